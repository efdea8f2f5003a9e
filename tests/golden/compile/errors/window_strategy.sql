-- strategy: subtract
SELECT src, SUM(loss) AS s FROM measurements [WINDOW 10 minutes] GROUP BY src
