SELECT 1 AS one FROM measurements [WINDOW 3 minutes]
