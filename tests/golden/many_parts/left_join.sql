SELECT a.src, b.loss FROM m[j] a LEFT JOIN m[j-1] b ON a.src = b.src
