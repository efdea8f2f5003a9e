SELECT m.src FROM measurements [WINDOW 10 minutes] m JOIN alarms a ON a.src = m.src
;
SELECT m.src FROM measurements [WINDOW 90 seconds] m JOIN alarms [WINDOW 5 minutes SLIDE 2 minutes] a ON a.src = m.src
;
SELECT src FROM measurements [WINDOW 10 minutes] WHERE src NOT IN (SELECT src FROM alarms [WINDOW 5 minutes])
;
SELECT m.src, a.lvl FROM measurements [WINDOW 10 minutes] m RIGHT JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src
;
SELECT *, m.loss + 1 FROM measurements [WINDOW 10 minutes] m NATURAL JOIN alarms [WINDOW 5 minutes] a
;
SELECT m.src, m.src, m.loss + 1, a.level AS part FROM measurements [WINDOW 10 minutes] m, alarms [WINDOW 5 minutes] a
;
WITH x AS (SELECT src FROM measurements [WINDOW 10 minutes]) SELECT x.src FROM x JOIN alarms [WINDOW 1 minute] a ON a.src = x.src
;
SELECT n.node FROM nodes n JOIN measurements [WINDOW 10 minutes] m ON m.src = n.node JOIN alarms [WINDOW 1 minute] a ON a.src = m.src
;
SELECT m.src, FIRST(a.level) AS l, MAX_BY(m.loss, a.src) AS b FROM measurements [WINDOW 10 minutes] m
JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src GROUP BY m.src
;
SELECT m.src, (SELECT MAX(level) FROM alarms [WINDOW 5 minutes]) AS l, ROW_NUMBER() OVER (ORDER BY loss) AS r
FROM measurements [WINDOW 10 minutes] m
;
SELECT m.src FROM measurements [WINDOW 10 minutes] m JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src AND rand() > 0.5
;
SELECT m.src FROM measurements [WINDOW 10 minutes] m JOIN nodes [WINDOW 5 minutes] n ON n.node = m.src JOIN alarm [WINDOW 1 minute] a ON TRUE
;
-- output: pairs
SELECT m.src FROM measurements [WINDOW 10 minutes] m LEFT JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src
LEFT ANTI JOIN pings [WINDOW 2 minutes] p ON p.src = m.src
;
-- output: pairs
SELECT src FROM measurements [WINDOW 10 minutes] EXCEPT SELECT src FROM alarms [WINDOW 5 minutes]
;
-- output: pairs
-- part: 120
SELECT m.src, COUNT(*) AS n FROM measurements [WINDOW 3 minutes] m LEFT SEMI JOIN alarms [WINDOW 4 minutes] a ON a.src = m.src GROUP BY m.src
;
-- output: pairs
SELECT m.src FROM measurements [WINDOW 3 minutes] m
;
SELECT src FROM measurements [ROWS 5 PER src]
;
SELECT src FROM measurements [ROWS five PER src WITHIN 1 hour]
;
SELECT src FROM alarms [ROWS 5 PER src WITHIN 1 hour]
;
-- strategy: last
SELECT m.src FROM measurements [WINDOW 10 minutes] m JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src
;
-- strategy: last
SELECT src, COUNT(*) AS n FROM measurements [WINDOW 10 minutes] GROUP BY src
;
SELECT COUNT(*) AS n FROM measurements [WINDOW 10 minutes] GROUP BY src ORDER BY loss DESC LIMIT many
;
SELECT src, COUNT(*) AS n FROM measurements [WINDOW 10 minutes] m JOIN alarms [WINDOW 1 minute] a USING (src) GROUP BY src LIMIT 5
;
SELECT dest, FREQUENT(x) FROM measurements [WINDOW 10 minutes] GROUP BY src
;
SELECT dest, FREQUENT(4) FROM measurements [WINDOW 10 minutes] GROUP BY src
;
-- strategy: factor
SELECT m.src, SUM(m.loss) AS n FROM measurements [WINDOW 10 minutes] m JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src GROUP BY m.src
;
-- strategy: factor
SELECT m.src, COUNT(*) AS n FROM measurements [WINDOW 10 minutes] m JOIN pings [WINDOW 5 minutes] p ON p.ms < m.hops GROUP BY m.src
;
-- strategy: factor
SELECT m.src, COUNT(*) AS n FROM measurements [WINDOW 10 minutes] m JOIN pings [WINDOW 5 minutes] p ON p.src = m.src
WHERE p.ms < m.hops GROUP BY m.src
;
-- strategy: merge
SELECT m.src, COUNT(*) AS n FROM measurements [WINDOW 10 minutes] m JOIN pings [WINDOW 5 minutes] p ON p.src = m.src GROUP BY m.src
;
-- strategy: grid
SELECT m.src, a.level FROM measurements [WINDOW 10 minutes] m LEFT JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src
;
-- strategy: grid
-- part: 120
SELECT m.src, a.level FROM measurements [WINDOW 10 minutes] m JOIN alarms [WINDOW 3 minutes] a ON a.src = m.src
;
-- strategy: grid
SELECT m.src, a.level FROM measurements [WINDOW 10 minutes] m JOIN alarms [WINDOW 1 minute] a ON a.src = m.src
;
SELECT m.src FROM measurements [WINDOW 10 minutes] m FULL JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src
;
-- output: rolling
SELECT src, COUNT(*) AS n FROM measurements PATTERN [a, b+] WHERE a.loss > 5 AND b.loss > 5 GROUP BY src
;
-- strategy: cells
SELECT m.src, SUM(m.loss) AS s FROM measurements [WINDOW 10 minutes] m JOIN pings [WINDOW 5 minutes] p ON p.src = m.src GROUP BY m.src
;
-- strategy: cells
SELECT m.src, COUNT(*) AS n FROM measurements [WINDOW 10 minutes] m LEFT JOIN pings [WINDOW 5 minutes] p ON p.src = m.src GROUP BY m.src
;
-- partial: true
-- strategy: factor
SELECT m.src, COUNT(*) AS n FROM measurements [WINDOW 10 minutes] m JOIN pings [WINDOW 5 minutes] p ON p.src = m.src GROUP BY m.src
;
-- partial: true
-- output: pairs
SELECT m.src, p.ms AS partial FROM measurements [WINDOW 10 minutes] m JOIN pings [WINDOW 5 minutes] p ON p.src = m.src
;
SELECT src, m.loss FROM measurements [WINDOW 10 minutes] m JOIN alarms [WINDOW 5 minutes] a ON a.src = m.src
WHERE EXISTS (SELECT 1 FROM pings [WINDOW 5 minutes] p WHERE src = m.src AND p.ms > 3) AND event_time IS NOT NULL
