SELECT a.src, b.loss FROM m[j] a JOIN m[j-1] b ON a.src = b.src
