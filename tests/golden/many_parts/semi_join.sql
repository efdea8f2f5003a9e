SELECT * FROM m[j] a LEFT SEMI JOIN m[j-1] b ON a.src = b.src
