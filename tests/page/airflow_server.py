"""A real Airflow API server with our plugin, for the tests of who may do what. Everything in one process.

python -m tests.page.airflow_server FOLDER PORT
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from partwise.serve.supervise.answers import answers
from partwise.serve.supervise.child import ending, free_port

ROOT = Path(__file__).resolve().parents[2]
PASSWORDS = {"admin": "a-password", "oper": "o-password", "looker": "l-password"}
DAGS = """
from airflow.sdk import DAG, Param
from airflow.providers.standard.operators.empty import EmptyOperator

# As partwise_airflow.service.backfill has them: only views that people know.
VIEWS = ["by_minute", "worst", "by_hour", "report", "final", "revenue"]
PARAMS = {
    "table": Param("by_minute", type="string", enum=VIEWS),
    "range": Param("", type="string"),
    "upstream": Param(False, type="boolean"),
    "downstream": Param(True, type="boolean"),
    "dry_run": Param(False, type="boolean"),
}
with DAG("partwise_backfill", schedule=None, params=PARAMS):
    EmptyOperator(task_id="plan")
for view in VIEWS:
    with DAG(view, schedule=None):
        EmptyOperator(task_id=view)
"""


def environment(folder: Path, port: int) -> dict[str, str]:
    passwords = folder / "passwords.json"
    passwords.write_text(json.dumps(PASSWORDS))
    dags = folder / "dags"
    dags.mkdir(exist_ok=True)
    (dags / "dags.py").write_text(DAGS)
    bundle = {"name": "dags", "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle"}
    settings = {
        "CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,oper:op,looker:viewer",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__DAGS_FOLDER": str(dags),
        "CORE__FERNET_KEY": "",
        "DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle | {"kwargs": {"path": str(dags)}}]),
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder / 'airflow.db'}",
        "DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        "API__BASE_URL": f"http://127.0.0.1:{port}",
        "API__SECRET_KEY": secrets.token_hex(),
        "API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "LOGGING__LOGGING_LEVEL": "WARNING",
    }
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PARTWISE"))},
        **{f"AIRFLOW__{name}": value for name, value in settings.items()},
        "AIRFLOW_HOME": str(folder),
        "PARTWISE_WORKSPACE": str(folder / "workspace"),
    }


@contextmanager
def running(folder: Path, seconds: float = 300) -> Iterator[str]:
    """The server as a process, until the block ends; yields its address once it answers. Its workspace is in `folder`."""
    port, said = free_port(), folder / "airflow.log"
    command = [sys.executable, "-m", "tests.page.airflow_server", str(folder), str(port)]
    with said.open("wb") as output:
        server = subprocess.Popen(command, cwd=ROOT, env=environment(folder, port), stdout=output, stderr=output)
    with ending(server, seconds=30):
        address, until = f"http://127.0.0.1:{port}", time.monotonic() + seconds
        while not answers(f"{address}/api/v2/monitor/health", seconds=20):
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"Airflow does not answer:\n{said.read_text(errors='replace')[-3000:]}")
            time.sleep(0.3)
        yield address


def main(port: int) -> None:
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
    from airflow.utils.db import initdb

    initdb()
    manager = DagBundlesManager()
    manager.sync_bundles_to_db()
    bundle = next(iter(manager.get_all_dag_bundles()))
    bag = BundleDagBag(bundle.path, bundle_path=bundle.path, bundle_name=bundle.name)
    sync_bag_to_db(bag, bundle.name, None)
    print("database ready", flush=True)

    import uvicorn
    from airflow.api_fastapi.main import app

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(int(sys.argv[2]))
