-- part: 300
-- no GROUP BY, a view as input, five minutes a part
SELECT COUNT(*) AS n, MIN(loss) AS least FROM untied PATTERN [a+] WHERE a.loss BETWEEN 1 AND 5
