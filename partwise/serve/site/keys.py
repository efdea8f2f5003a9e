"""Keys and passwords: generated at the first start, kept in files that only their owner can read."""

from __future__ import annotations

import base64
import json
import os
import secrets
from pathlib import Path

from partwise.serve.site.environment import Keys
from partwise.serve.site.site import CannotServe

USER = "admin"
#: Without letters and digits that look alike.
_LETTERS = "abcdefghkmnpqrstuvwxyzABCDEFGHKMNPQRSTUVWXYZ23456789"
_EXPECTED = 'Expected is a map of texts, such as {"admin": "a password"}; without the file a new one is made.'


def keys_of(state: Path) -> Keys:
    """The keys of a site, made if there are none. The password is what its file says: people may change it there.

    Raises CannotServe for a file that they left with a typing error.
    """
    file, passwords = state / "keys.json", state / "passwords.json"
    known = _read(file)
    for name in ("fernet", "jwt", "session"):
        # Fernet wants 32 bytes; signatures by SHA-512 want twice as many.
        known.setdefault(name, base64.urlsafe_b64encode(os.urandom(32 if name == "fernet" else 64)).decode())
    users = _read(passwords)
    users.setdefault(USER, "".join(secrets.choice(_LETTERS) for _ in range(16)))
    write_private(file, json.dumps(known))
    write_private(passwords, json.dumps(users))
    return Keys(known["fernet"], known["jwt"], known["session"], USER, users[USER])


def _read(file: Path) -> dict[str, str]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError as why:
        raise CannotServe(f"{file}:{why.lineno}:{why.colno}: not valid JSON: {why.msg}. {_EXPECTED}") from None
    except (OSError, UnicodeDecodeError) as why:
        raise CannotServe(f"{file} cannot be read: {why}. {_EXPECTED}") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise CannotServe(f"{file}: not a map of names to texts. {_EXPECTED}")
    return found


def write_private(file: Path, text: str) -> None:
    """Never readable by others, not even for a moment; whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as output:
        output.write(text)
    draft.replace(file)
