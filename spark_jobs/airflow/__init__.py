"""What Airflow's tasks call."""
