-- part: 120
SELECT src, SUM(loss) AS s FROM measurements [WINDOW 90 seconds SLIDE 1 minute] GROUP BY src
