SELECT src, COUNT(*) AS n FROM measurements PATTERN [a, b] WHERE a.hops > 5 AND a.hops < 3 GROUP BY src
