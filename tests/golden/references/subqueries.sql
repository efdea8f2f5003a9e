SELECT src, (SELECT MAX(loss) FROM measurements[j-1] x WHERE x.src = a.src) AS before
FROM (
  SELECT src, SUM(loss) AS loss FROM measurements[60*j..60*j+59] GROUP BY src
) a
WHERE src IN (SELECT node FROM nodes WHERE region = 'EU')
  AND EXISTS (SELECT 1 FROM total_loss[j/60] t WHERE t.src = a.src)
