WITH measurements AS (SELECT * FROM measurements[j] WHERE loss > 0),
     worst AS (SELECT src, MAX(loss) AS loss FROM measurements GROUP BY src),
     both AS (SELECT * FROM worst UNION ALL SELECT src, loss FROM measurements[j-1])
SELECT w.* FROM both w JOIN nodes n ON n.node = w.src
WHERE w.src NOT IN (WITH nodes AS (SELECT 'a' AS node) SELECT node FROM nodes)
