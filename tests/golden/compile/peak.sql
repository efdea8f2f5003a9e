-- up and down exclude each other, so one set of columns does for both
SELECT src, COUNT(*) AS ct, MAX(hops) AS top, COUNT(up.*) AS ups, AVG(down.cost) AS down_cost
FROM measurements m PATTERN [first, up+, down+]
WHERE up.hops > first.hops AND up.hops > PREV(up.hops) AND down.hops < up.hops AND down.hops < PREV(down.hops)
  AND m.dest <> 'test'
GROUP BY m.src
