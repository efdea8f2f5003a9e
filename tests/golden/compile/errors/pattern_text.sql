SELECT src, COUNT(*) AS n FROM measurements PATTERN [a, b*, a, ] GROUP BY src
