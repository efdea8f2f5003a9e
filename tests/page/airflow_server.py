"""A real Airflow API server with our plugin, for the tests of who may do what. Everything in one process.

python -m tests.page.airflow_server FOLDER PORT
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PASSWORDS = {"admin": "a-password", "oper": "o-password", "looker": "l-password"}
DAGS = """
from airflow.sdk import DAG, Param
from airflow.providers.standard.operators.empty import EmptyOperator

# As partwise_airflow.backfill has them: only views that people know.
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
