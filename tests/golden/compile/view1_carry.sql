-- gaps: carry
SELECT src, dest, COUNT(*) AS ct, SUM(loss) AS sum_loss
FROM measurements PATTERN [a, b, c, d+]
WHERE a.loss > 10 AND b.loss > 10 AND c.loss > 10 AND d.loss > 10
GROUP BY src, dest
