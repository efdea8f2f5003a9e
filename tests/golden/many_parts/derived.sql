SELECT s.src FROM (SELECT src, COUNT(*) AS n FROM m[j] GROUP BY src) s (src, n) WHERE s.n > 1
