"""`python -m partwise.serve.site.passwords COMMAND...`: gives Airflow the password of its user, then becomes the command.

Airflow's simple login reads passwords from a file; containers get theirs by the variable AIRFLOW_ADMIN_PASSWORD.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from partwise.serve.site.keys import write_private


def main() -> None:
    password = os.environ.pop("AIRFLOW_ADMIN_PASSWORD", "")
    if not password:
        sys.exit("AIRFLOW_ADMIN_PASSWORD is not set: choose a password for Airflow's user")
    os.environ.pop("PARTWISE_AIRFLOW_PASSWORD", None)  # is for commands beside the server, not for the server
    user = os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"].partition(":")[0]
    write_private(Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]), json.dumps({user: password}))
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
