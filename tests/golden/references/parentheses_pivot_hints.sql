SELECT /*+ BROADCAST(n), MERGE(m) */ *
FROM (measurements[j] m JOIN nodes n ON n.node = m.src)
JOIN (SELECT * FROM total_loss[j-1] PIVOT (SUM(total) FOR src IN ('a', 'b'))) p
WHERE m.loss BETWEEN 1 AND 2.5e0 AND 1. < 2 AND .5 > 0
