"""A session of Partwise: on each line it loads what has landed and computes what is ready, and answers with the seconds."""

import sys
import time

import partwise

workspace = partwise.open(".")
for _ in sys.stdin:
    began = time.perf_counter()
    found = workspace.run()
    if found.problems:
        sys.exit(f"Partwise failed: {found.problems}")
    print(f"SECONDS {time.perf_counter() - began}", flush=True)
