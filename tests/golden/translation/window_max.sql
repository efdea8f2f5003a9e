-- strategy: merge
SELECT src, MAX(loss) AS max_loss, AVG(loss) AS avg_loss
FROM measurements [WINDOW 10 minutes]
GROUP BY src
HAVING MAX(loss) > 5
