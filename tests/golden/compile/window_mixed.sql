-- part: 3600
-- strategy: subtract
SELECT n.region, SUM(m.cost) / COUNT(*) AS mean_cost, MAX(m.loss) AS worst, STDDEV(m.hops) AS spread,
  COUNT(DISTINCT m.dest) AS targets, MEDIAN(m.loss) AS middle, LAST(m.hops) AS last_hops
FROM measurements [WINDOW 1 day SLIDE 1 hour] m JOIN nodes n ON n.node = m.src
WHERE m.loss >= 0
GROUP BY n.region
