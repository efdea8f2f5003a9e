SELECT src, SUM(loss) AS s FROM m[j-9..j] GROUP BY src
