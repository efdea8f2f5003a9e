"""The whole product on one machine: PostgreSQL, a warm Spark driver and Airflow under one supervisor.

    site (what and where) → components (which processes, in which order) → supervisor (starts, watches, stops)

Nothing here imports Airflow or Spark: they are child processes.
"""
