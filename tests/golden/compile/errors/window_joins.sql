SELECT a.src, SUM(a.loss) AS s, MODE(a.dest) AS d FROM measurements [WINDOW 10 minutes] a
RIGHT JOIN nodes ON node = a.src JOIN untied u ON u.src = a.src GROUP BY a.src
