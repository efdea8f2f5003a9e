SELECT a.src FROM m[j] a FULL JOIN m[j-1] b ON a.src = b.src JOIN m[j-2] c USING (dest)
