SELECT src, MEDIAN(loss) AS m, COUNT(DISTINCT dest) AS d, SUM(dest) AS s, SUM(a.loss + b.loss) AS t
FROM measurements PATTERN [a, b+]
GROUP BY src
