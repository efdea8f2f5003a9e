SELECT COALESCE(a.src, b.src) AS src, c.loss FROM m[j] a FULL JOIN m[j-1] b ON a.src = b.src LEFT JOIN m[j-2] c ON c.src = b.src
