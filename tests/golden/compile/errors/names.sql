SELECT src, COUNT(*) AS n, SUM(hops) AS N, MAX(hops) AS part FROM measurements [WINDOW 10 minutes] GROUP BY src
