SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM m[j-1]) AS before FROM m[j]
