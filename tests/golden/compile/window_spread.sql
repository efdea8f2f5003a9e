-- Of doubles: counts, means and distances from them are kept in each pane and put together.
SELECT src, STDDEV(loss) AS spread, CORR(hops, loss) AS together FROM measurements [WINDOW 10 minutes] GROUP BY src
