"""`python -m partwise.serve.supervise.answers URL`: exit code 0 if a server answers there. For health checks of containers."""

from __future__ import annotations

import socket
import sys
import urllib.request
from urllib.parse import urlsplit


def answers(url: str, seconds: float = 4.0) -> bool:
    """`http://...` must answer 200; of anything else (`sc://host:port`) the port must take connections."""
    try:
        if url.startswith("http"):
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(url, timeout=seconds) as found:
                return bool(found.status == 200)
        where = urlsplit(url)
        with socket.create_connection((where.hostname or "", where.port or 0), timeout=seconds):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(0 if answers(sys.argv[1]) else 1)
