SELECT src, src IN (SELECT src FROM m[j-1]) AS again, COUNT(*) AS n FROM m[j] GROUP BY src
