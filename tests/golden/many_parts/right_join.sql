SELECT b.src, a.loss FROM m[j] a RIGHT OUTER JOIN m[j-1] b ON a.src = b.src WHERE b.loss > 1
