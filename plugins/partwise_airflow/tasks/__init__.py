"""Tasks of a view's DAG: the sensor, the step, submission to a cluster, requests."""
