SELECT src, dest, loss + COUNT(*) AS x, COUNT(*) + 1, rand() + COUNT(*) AS r FROM measurements [WINDOW 10 minutes] GROUP BY src
