SELECT src, a.loss, b.loss AS before FROM m[j] a FULL JOIN m[j-1] b USING (src)
