SELECT src, dest, grouping_id() AS g, COUNT(*) AS n FROM m[j] GROUP BY ROLLUP(src, dest)
