"""The Parts page: a web application that Airflow serves, and the files that its browser side consists of."""
