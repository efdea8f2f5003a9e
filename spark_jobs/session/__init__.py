"""The Spark session: in this process, on a cluster, or a Connect server."""
