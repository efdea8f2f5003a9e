"""Landing files in an object store: listed with size, time and ETag, read through a local copy.

An object appears there whole or not at all: an upload in several pieces shows when its last piece is in. So nobody has to
look twice at young files, as in a folder.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import IO

from partwise import object_store
from partwise.sources.files import ListedFile, set_apart
from partwise.storage.remote import Bucket, Object

_MAGIC = re.compile(r"[*?[]")
_SECOND = 1_000_000_000


def matches(pattern: str) -> dict[str, str]:
    """URL -> URL of all objects that a pattern means: `*` and `?` within a name, `**` over folders, as in a folder."""
    root, _, rest = pattern.removeprefix(object_store.SCHEME).partition("/")
    rest = rest + "*" if rest.endswith("/") or not rest else rest
    fixed, wild = _split(rest)
    base = f"{object_store.SCHEME}{root}" + (f"/{fixed}" if fixed else "")
    exact = Bucket(f"{object_store.SCHEME}{root}").head(rest)  # a name with brackets, written as it is
    found = [rest] if exact is not None else []
    if _MAGIC.search(wild):
        expression = re.compile(_expression(wild))
        deep = "/" in wild or "**" in wild
        names = (f.name for f in (Bucket(base).below("") if deep else Bucket(base).inside("")[1]))
        chosen = (name for name in names if expression.fullmatch(name) and not set_apart(name, wild))
        found += [f"{fixed}/{name}" if fixed else name for name in chosen]
    urls = sorted({f"{object_store.SCHEME}{root}/{name}" for name in found if not name.endswith("/")})
    return {url: url for url in urls}


def _split(pattern: str) -> tuple[str, str]:
    """The folder that is written out, and the rest of a pattern."""
    pieces = pattern.split("/")
    first = next((at for at, piece in enumerate(pieces) if _MAGIC.search(piece)), len(pieces) - 1)
    return "/".join(pieces[:first]), "/".join(pieces[first:])


def _expression(pattern: str) -> str:
    """What `glob` means by a pattern: a star at the front takes no hidden names, and none goes over a slash."""
    found = []
    for piece in pattern.split("/"):
        if piece == "**":
            found.append("(?:[^/.][^/]*/)*")
            continue
        hidden = "" if piece.startswith(".") else r"(?!\.)"
        found.append(hidden + "".join(_letters(piece)) + "/")
    text = "".join(found)
    return text.removesuffix("/") if not pattern.endswith("**") else f"{text}[^/.][^/]*"


def _letters(piece: str) -> Iterator[str]:
    at = 0
    while at < len(piece):
        letter, end = piece[at], piece.find("]", at + 2)
        if letter == "*":
            yield "[^/]*"
        elif letter == "?":
            yield "[^/]"
        elif letter == "[" and end > 0:
            inside = piece[at + 1 : end].replace("\\", r"\\")
            yield f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
            at = end
        else:
            yield re.escape(letter)
        at += 1


def looks(paths: Mapping[str, str]) -> dict[str, ListedFile]:
    """Each folder is listed once, whatever number of its files is meant."""
    folders: dict[str, dict[str, str]] = {}
    for name, url in paths.items():
        folder, _, base = url.rpartition("/")
        folders.setdefault(folder, {})[base] = name
    found = {}
    for folder, names in folders.items():
        for each in Bucket(folder).inside("")[1]:
            if (known := names.get(each.name)) is not None:
                found[known] = ListedFile(known, each.size, mark(each))
    return found


def mark(found: Object) -> int:
    """Time and ETag in one number, as the ledger keeps it. Stores tell time in seconds; the ETag tells contents apart that
    arrived in the same one."""
    digest = hashlib.blake2b((found.mark or "").encode(), digest_size=8).digest()
    return int(found.changed.timestamp()) * _SECOND + int.from_bytes(digest, "big") % _SECOND


def fetched(url: str, seen: ListedFile) -> IO[bytes]:
    """A local copy, which is gone when nobody holds it. Raises FileNotFoundError if the object is another one by now."""
    folder, _, name = url.rpartition("/")
    copy = tempfile.NamedTemporaryFile(prefix="partwise-", suffix=f"-{len(name)}")  # noqa: SIM115
    now = Bucket(folder).download(name, copy)
    if now is None or (now.size, mark(now)) != (seen.size, seen.mtime):
        copy.close()
        raise FileNotFoundError(url)
    copy.flush()
    return copy


def are_there(urls: Iterable[str]) -> set[str]:
    return set(looks({url: url for url in urls}))
