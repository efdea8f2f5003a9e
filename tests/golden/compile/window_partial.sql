-- partial: true
-- strategy: merge
SELECT BOOL_OR(hops > 9) AS far, COUNT_IF(hops > 9) AS n_far FROM measurements [WINDOW 3 minutes]
