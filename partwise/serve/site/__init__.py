"""What a site needs before its processes start: ports, keys, passwords, databases, settings of Airflow."""
