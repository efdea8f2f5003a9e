SELECT src, COUNT(*) AS n FROM measurements [WINDOW ten minutes] GROUP BY src
