-- strategy: subtract
SELECT src, SUM(hops) AS hops, SUM(cost) AS cost, SUM(bytes) AS bytes, COUNT(*) AS n
FROM measurements [WINDOW 4 minutes]
GROUP BY src
