-- title: a join of two windows of different lengths
SELECT m.src, m.loss, a.level
FROM measurements [WINDOW 10 minutes] m
JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src
WHERE m.loss > 5 -- only bad ones
;
-- title: the same, each pair once
-- output: pairs
SELECT m.src, m.loss, a.level
FROM measurements [WINDOW 10 minutes] m
JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src
WHERE m.loss > 5 OR a.level = 'it''s bad'
;
-- title: pairs of three streams, one of them with shorter parts
-- output: pairs
SELECT m.src, a.level, p.ms
FROM measurements [WINDOW 2 minutes] m
JOIN alarms [WINDOW 1 minute] a ON a.src = m.src
JOIN pings [WINDOW 2 minutes] p ON p.src = m.src
;
-- title: LEFT JOIN, with a dimension beside
SELECT m.src, n.region, a.level
FROM measurements [WINDOW 10 minutes] m
LEFT JOIN alarms AS a [WINDOW 5 minutes] ON a.src = m.src
JOIN nodes n ON n.node = m.src
;
-- title: NOT EXISTS
-- part: 120
SELECT src, loss FROM measurements [WINDOW 10 minutes] m
WHERE NOT EXISTS (SELECT 1 FROM pings [WINDOW 4 minutes] p WHERE p.src = m.src AND p.ms < 100)
;
-- title: EXCEPT ALL
SELECT src FROM measurements [WINDOW 10 minutes] EXCEPT ALL SELECT src FROM alarms [WINDOW 10 minutes]
;
-- title: GROUP BY over a union
SELECT src, COUNT(*) AS n
FROM (SELECT src FROM measurements [WINDOW 10 minutes] UNION ALL SELECT src FROM alarms [WINDOW 5 minutes]) u
GROUP BY src
;
-- title: DISTINCT
SELECT DISTINCT src FROM measurements [WINDOW 10 minutes] WHERE loss > 5
;
-- title: DISTINCT by the last occurrence
-- strategy: last
-- part: 120
SELECT DISTINCT src, CAST(loss AS INT) AS loss FROM measurements [WINDOW 10 minutes] WHERE loss > 5
;
-- title: the ten largest groups
-- strategy: merge
SELECT src, COUNT(*) AS n FROM measurements [WINDOW 10 minutes] GROUP BY src ORDER BY n DESC LIMIT 10
;
-- title: frequent groups
SELECT src, FREQUENT(40) FROM measurements [WINDOW 10 minutes] WHERE loss > 5 GROUP BY src
;
-- title: the last rows of each group
SELECT r.src, AVG(r.loss) AS loss FROM measurements [ROWS 3 PER src WITHIN 10 minutes] r GROUP BY r.src
;
-- title: aggregates over a join, each stream alone
-- strategy: factor
SELECT m.src, COUNT(*) AS n, SUM(m.hops) AS hops, MAX(a.level) AS level
FROM measurements [WINDOW 10 minutes] m JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src
WHERE m.loss > 5 GROUP BY m.src HAVING COUNT(*) > 2
;
-- title: a join of two windows as a grid
-- strategy: grid
SELECT m.src, m.loss, a.level FROM measurements [WINDOW 10 minutes] m JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src
;
-- title: rolling rows of one window, as a grid
-- strategy: grid
-- output: rolling
SELECT src, loss FROM measurements [WINDOW 10 minutes] WHERE loss > 5
;
-- title: rolling groups of one window
-- output: rolling
SELECT src, COUNT(*) AS n FROM measurements [WINDOW 10 minutes] GROUP BY src
;
-- title: aggregates over a join as cells
-- strategy: cells
SELECT m.src, COUNT(*) AS n, AVG(p.ms) AS ms FROM measurements [WINDOW 10 minutes] m JOIN pings [WINDOW 5 minutes] p
ON p.src = m.src AND p.ms > m.loss GROUP BY m.src HAVING COUNT(*) > 2
;
-- title: windows that are not complete, marked
-- partial: true
SELECT m.src, p.ms FROM measurements [WINDOW 10 minutes] m LEFT JOIN pings [WINDOW 5 minutes] p ON p.src = m.src
;
-- title: GROUP BY over a subquery of one window
SELECT src, COUNT(*) AS n FROM (SELECT src FROM measurements [WINDOW 10 minutes] WHERE loss > 5) u GROUP BY src
