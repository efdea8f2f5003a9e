"""Writes `.env` for docker compose: passwords and keys, generated here, readable by their owner alone.

With `--object-store` it writes `.env.store` instead: the key of the S3 server in the profile `object-store`. For a store of
your own, write AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY into that file yourself.

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


STORE = ENV.with_name(".env.store")


def store_keys() -> dict[str, str]:
    """The server's own key is the one that everybody uses: it serves this project alone."""
    name, secret = "partwise", secrets.token_urlsafe(32)
    return {
        "AWS_ACCESS_KEY_ID": name,
        "AWS_SECRET_ACCESS_KEY": secret,
        "MINIO_ROOT_USER": name,
        "MINIO_ROOT_PASSWORD": secret,
    }


def main(arguments: list[str]) -> int:
    store = "--object-store" in arguments
    named = [Path(word) for word in arguments if not word.startswith("--")]
    file = named[0] if named else STORE if store else ENV
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        print(f"{file} is there already; nothing was changed.")
        return 0
    with open(descriptor, "w", encoding="utf-8") as output:
        made = store_keys() if store else {name: make() for name, make in WHAT.items()}
        output.writelines(f"{name}={value}\n" for name, value in made.items())
    user = "partwise, the key AWS_SECRET_ACCESS_KEY" if store else "admin, the password AIRFLOW_ADMIN_PASSWORD"
    print(f"{file} written. The user is {user} in it.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
