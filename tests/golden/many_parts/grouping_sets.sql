SELECT src, dest, COUNT(*) AS n FROM m[j] GROUP BY GROUPING SETS ((src), (dest), ())
