-- The paper's View1. Its Algorithm 1 puts the condition of d+ on the self edge only (it must also stand on c -> d),
-- Algorithm 2 writes CASE without ELSE, filters the previous state, drops restarts and joins without ON.
SELECT src, dest, COUNT(*) AS ct, SUM(loss) AS sum_loss
FROM measurements PATTERN [a, b, c, d+]
WHERE a.loss > 10 AND b.loss > 10 AND c.loss > 10 AND d.loss > 10
GROUP BY src, dest
