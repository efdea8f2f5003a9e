-- The paper's View5 (5.2.1) with a second aggregate. W panes must exist before the first window; AVG carries sum and count.
-- strategy: merge
SELECT src, MAX(loss) AS max_loss, AVG(loss) AS avg_loss
FROM measurements [WINDOW 10 minutes]
GROUP BY src
HAVING MAX(loss) > 5
