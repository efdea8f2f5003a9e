SELECT src, FIRST(loss) AS f FROM m[j] GROUP BY src
