"""Adding up in DuckDB.

compared   which rows are compared with which, and who is exact
totals     sums by group and by key
quantiles  counts at every value, inverted
extremes   certain bounds
bounds     how much one unknown key can add
rows       SELECT of rows, with three counts
exactly    few keys by the view's own query
"""
