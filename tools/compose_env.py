"""Writes `.env` for docker compose: passwords and keys, generated here, readable by their owner alone.

Needs nothing but Python. An existing file is left as it is.
"""

import base64
import os
import secrets
import sys
from pathlib import Path

ENV = Path(__file__).resolve().parents[1] / ".env"
WHAT = {
    "POSTGRES_PASSWORD": lambda: secrets.token_urlsafe(24),
    "AIRFLOW_ADMIN_PASSWORD": lambda: secrets.token_urlsafe(12),
    "AIRFLOW_FERNET_KEY": lambda: base64.urlsafe_b64encode(os.urandom(32)).decode(),
    "AIRFLOW_SECRET_KEY": lambda: secrets.token_urlsafe(48),
    "AIRFLOW_JWT_SECRET": lambda: secrets.token_urlsafe(64),
}


def main(file: Path = ENV) -> int:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        print(f"{file} is there already; nothing was changed.")
        return 0
    with open(descriptor, "w", encoding="utf-8") as output:
        output.writelines(f"{name}={make()}\n" for name, make in WHAT.items())
    print(f"{file} written. The user is admin, the password AIRFLOW_ADMIN_PASSWORD in it.")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
