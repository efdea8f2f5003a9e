FROM measurements[j] m
SELECT m.src, count(*) AS n
GROUP BY m.src
