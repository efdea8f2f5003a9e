SELECT src, COUNT(*) FILTER (hops > 1) AS n, SUM(hops) FILTER (WHERE) AS s FROM measurements [WINDOW 3 minutes] GROUP BY src
