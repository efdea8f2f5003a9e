"""Fresh answers: what a query would give after a refresh, estimated from a sample that does not wait for one.

asked/     SQL -> which totals are needed, and what each result is over them; or why it cannot be answered
look       which sequence an answer is of, and states of parts then
states     which parts are clean, stale or missing, and what they are compared with
adding/    adds up everything in DuckDB, by group, and how much an unknown key can add
deciding   totals -> values with intervals, and refusals (why_not)
answer     what comes out
read       all of it, for a workspace
probe      estimates beside what a refresh gave; of_part the same for people who look at one part
"""
