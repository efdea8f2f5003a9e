SELECT src, (SELECT MAX(loss) FROM m[j-1]) AS top, COUNT(*) AS n FROM m[j] GROUP BY src
