SELECT a.src, b.n FROM m[j] a, LATERAL (SELECT COUNT(*) AS n FROM m[j-1] x WHERE x.src = a.src) b
