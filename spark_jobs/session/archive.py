"""`python -m spark_jobs.session.archive` keeps loaded classes for the next drivers, which then start with less work.

The JVM dumps the classes of a short warm-up when it ends. The file belongs to one Java, one Spark and one
set of jars, and is made once for them; a JVM that cannot use it does without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from partwise.serve.supervise.child import free_port
from spark_jobs.session.connect import start, wait_for
from spark_jobs.session.session import archive_in, find_java, jars_folder, java_options

#: What short drivers do first: write and read Parquet, aggregate, read Delta.
WARM_UP = """
import sys
from spark_jobs.session.session import session
spark, path = session(remote=sys.argv[1]), sys.argv[2]
spark.range(10).selectExpr("id", "id % 2 AS part").write.parquet(path + "/plain")
spark.read.parquet(path + "/plain").groupBy("part").count().collect()
spark.range(10).write.format("delta").save(path + "/delta")
spark.read.format("delta").load(path + "/delta").collect()
"""


def main() -> int:
    find_java()
    folder = jars_folder()
    target = archive_in(folder)
    if target.exists():
        return 0
    fresh = folder / f"new-{os.getpid()}.jsa"
    options = [*java_options(folder), f"-XX:ArchiveClassesAtExit={fresh}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    port = free_port()
    process = start(master="local[2]", port=port, conf={"spark.driver.extraJavaOptions": " ".join(options)})
    try:
        wait_for(process, port)
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, "-c", WARM_UP, f"sc://127.0.0.1:{port}", scratch]
            subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
        process.terminate()
        process.wait(300)  # the dump happens now
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if not fresh.exists():
        print("no archive was made; drivers start without one", file=sys.stderr)
        return 1
    for old in folder.glob("classes*.jsa"):
        old.unlink()
    fresh.replace(target)
    print(f"{target}: {target.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
