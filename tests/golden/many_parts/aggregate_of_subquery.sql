SELECT src, SUM(loss - (SELECT MIN(loss) FROM m[j-1])) AS above FROM m[j] GROUP BY src
