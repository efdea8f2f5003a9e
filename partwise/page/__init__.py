"""What the Parts page shows, from a snapshot of the ledger: plain data that becomes JSON as it is.

Nothing here knows of Airflow or of the web. Every query goes by an index and returns ranges or counts of cells,
so that a page over a million parts costs what one over a thousand does.
"""
