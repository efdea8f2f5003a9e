SELECT src, SUM(hops) AS total
FROM measurements PATTERN [low, high, again]
WHERE low.hops <= 3 AND high.hops > 3 AND again.hops <= 3
GROUP BY src
