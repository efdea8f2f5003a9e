SELECT src, COUNT(*) AS length, FIRST(loss) AS low, LAST(loss) AS high, FIRST(event_time) AS since
FROM measurements PATTERN [a, b+]
WHERE b.loss > a.loss AND b.loss > PREV(b.loss)
GROUP BY src
HAVING length >= 3
