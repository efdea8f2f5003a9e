SELECT src, dest, COUNT(*) AS n FROM m[j] GROUP BY 1, 2
