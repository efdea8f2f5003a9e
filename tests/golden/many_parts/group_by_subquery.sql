SELECT loss - (SELECT MIN(loss) FROM m[j-1]) AS above, COUNT(*) AS n FROM m[j] GROUP BY loss - (SELECT MIN(loss) FROM m[j-1])
