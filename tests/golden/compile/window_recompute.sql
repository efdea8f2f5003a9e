-- strategy: recompute
SELECT src, STDDEV(loss) AS spread, CORR(hops, cost) AS together, COUNT(DISTINCT dest) AS targets
FROM measurements [WINDOW 10 minutes]
GROUP BY src
HAVING spread > 1
