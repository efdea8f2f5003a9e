SELECT a.src FROM m[j] a WHERE NOT EXISTS (SELECT 1 FROM m[j-1] b WHERE b.src = a.src)
