SELECT * FROM m[j] PIVOT (SUM(loss) FOR src IN ('a', 'b'))
