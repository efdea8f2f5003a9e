SELECT a.src FROM m[j] a LEFT ANTI JOIN m[j-1] b ON a.src = b.src
