"""Writes partwise/definitions/spark_functions.txt: the functions that Spark has by itself, as Spark says.

Run it after an update of Spark: `python tools/spark_functions.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

from spark_jobs.session.session import session

FILE = Path(__file__).resolve().parents[1] / "partwise" / "definitions" / "spark_functions.txt"
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def main() -> None:
    spark = session()
    found = sorted(row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect() if _NAME.fullmatch(row[0]))
    FILE.write_text("\n".join(found) + "\n", encoding="utf-8")
    print(f"{len(found)} functions of Spark {spark.version}")


if __name__ == "__main__":
    main()
