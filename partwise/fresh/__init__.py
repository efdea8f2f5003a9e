"""Fresh answers: what a query would give after a refresh, estimated from a sample that does not wait for one.

question   SQL -> which totals are needed, and what each result is over them; or why it cannot be answered
states     which parts are clean, stale or missing, and what they are compared with
bounds     how much a key that is neither sampled nor exact can add to a total
totals     adds up everything in DuckDB, by group
answer     totals -> values with intervals, and refusals
"""
