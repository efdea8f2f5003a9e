SELECT COUNT(*) AS n, SUM(loss) AS s FROM m[j] WHERE loss > 0
