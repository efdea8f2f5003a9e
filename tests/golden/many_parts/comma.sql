SELECT a.src, b.loss FROM m[j] a, m[j-1] b, nodes n WHERE a.src = b.src
