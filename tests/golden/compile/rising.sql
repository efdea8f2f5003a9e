-- Two neighbours compared: what the paper's Algorithm 1 puts on auxlist is kept once per group (last_loss). A row that breaks
-- a run may begin the next one; in the paper it is lost.
SELECT src, COUNT(*) AS length, FIRST(loss) AS low, LAST(loss) AS high, FIRST(event_time) AS since
FROM measurements PATTERN [a, b+]
WHERE b.loss > a.loss AND b.loss > PREV(b.loss)
GROUP BY src
HAVING length >= 3
