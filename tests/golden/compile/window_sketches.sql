-- strategy: merge
SELECT src, APPROX_COUNT_DISTINCT(dest) AS targets, APPROX_PERCENTILE(loss, 0.95) AS p95, ARG_MAX(dest, loss) AS worst
FROM measurements [WINDOW 1 hour]
GROUP BY src
