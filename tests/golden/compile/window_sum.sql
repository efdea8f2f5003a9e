-- The paper's View6 (5.2.2), corrected: no sums since the beginning of time, whose late rows would rewrite every later part,
-- but a rolling window; a group leaves when its count is 0, not when its sum is; SUM of only NULLs is NULL, by a second count.
-- strategy: subtract
SELECT src, SUM(hops) AS hops, SUM(cost) AS cost, SUM(bytes) AS bytes, COUNT(*) AS n
FROM measurements [WINDOW 4 minutes]
GROUP BY src
