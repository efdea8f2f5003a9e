SELECT src, COUNT(*) AS n FROM measurements PATTERN [a, b] WHERE a.loss + * 1 > 2 AND b.loss > (1 GROUP BY src
