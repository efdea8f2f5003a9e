SELECT (SELECT COUNT(*) FROM m[j]) AS n, (SELECT MAX(loss) FROM m[j-1]) AS top
