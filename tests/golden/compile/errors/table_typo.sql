SELECT src, COUNT(*) AS n FROM measurement [WINDOW 10 minutes] GROUP BY src
