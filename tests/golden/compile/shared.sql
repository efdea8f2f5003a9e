-- Whatever is above 90 is above 50: a run that reached `critical` is also one of `high`, with the same start. One flag.
SELECT src, COUNT(*) AS readings, SUM(loss) AS total, MAX(loss) AS worst
FROM measurements PATTERN [high+, critical+]
WHERE high.loss > 50 AND critical.loss > 90
GROUP BY src
