-- neither state makes the other superfluous: two sets of columns
SELECT src, COUNT(*) AS ct, SUM(hops) AS total
FROM measurements PATTERN [a+, b]
WHERE a.hops >= 1
GROUP BY src
