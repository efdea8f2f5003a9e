SELECT a.src FROM nodes n JOIN (m[j] a JOIN m[j-1] b ON a.src = b.src) ON n.node = a.src
