"""A driver that is just being started again is waited for, before Spark's client is told to connect.

The client tries again by itself, but with pauses that grow to a minute: of a driver that was gone for ten seconds it
would know after fifty.
"""

from __future__ import annotations

import logging
import time
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.sdk import BaseHook

from partwise.serve.supervise.answers import answers

log = logging.getLogger(__name__)

#: Seconds. After that the client is left to find out by itself what is wrong.
PATIENCE = 60.0
PORT = 15002


def wait_for_driver(conn_id: str | None, seconds: float = PATIENCE) -> None:
    """Until the Connect server of a connection takes connections, or the patience ends."""
    if conn_id is None or BaseHook.get_connection(conn_id).conn_type != SparkConnectHook.conn_type:
        return
    where = urlsplit(SparkConnectHook(conn_id).get_connection_url())
    host, port = where.hostname or "localhost", where.port or PORT
    if getproxies() and not proxy_bypass(host):
        return  # the client goes by the proxy: what answers us here says nothing about it
    end, told = time.monotonic() + seconds, False
    while not answers(f"sc://{host}:{port}", seconds=2) and time.monotonic() < end:
        if not told:
            log.info("the Spark driver at %s:%s does not answer; waiting for it", host, port)
            told = True
        time.sleep(0.5)
