SELECT src, MAX(loss) AS s FROM m[60*j..60*j+59] GROUP BY src HAVING MAX(loss) > 3
