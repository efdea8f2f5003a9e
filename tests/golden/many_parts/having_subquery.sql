SELECT src, COUNT(*) AS n FROM m[j] GROUP BY src HAVING COUNT(*) > (SELECT MIN(loss) FROM m[j-1])
