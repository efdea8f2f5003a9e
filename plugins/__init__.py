"""Airflow: DAG builder, sensor and trigger, operators, UI page."""
