SELECT src, COUNT(*) AS n FROM measurements PATTERN [a, b]
WHERE a.loss > (SELECT MAX(loss) FROM hourly) AND b.loss > rand() AND MAX(b.loss) > 1
GROUP BY src
