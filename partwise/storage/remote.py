"""A table's folder in an object store: one request for each thing that is asked.

A folder there is nothing but the beginning of names, so none is ever made, and one that is empty is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, Any, TypeVar

from partwise import object_store
from partwise.storage.errors import StoreProblem

_T = TypeVar("_T")
#: Bytes from the end of a Parquet file that hold its footer, unless it has very many columns or row groups.
TAIL = 1 << 16
#: Bytes. Larger files are put in pieces.
_AT_ONCE = 64 << 20
#: A name is tried again for so long when the store does not answer, with pauses that grow.
_RETRY: Any = {"max_retries": 6}
_CLIENT: Any = {"connect_timeout": "5s", "timeout": "60s"}


@dataclass(frozen=True, slots=True)
class Object:
    """A file as a listing shows it. `mark` (its ETag) is another one when the content is."""

    name: str
    size: int
    changed: Any
    mark: str | None


@dataclass(frozen=True)
class Bucket:
    """A folder of an object store by its URL. Names are relative to it."""

    url: str

    @cached_property
    def _store(self) -> Any:
        if not object_store.is_s3(self.url):
            return _other(self.url)
        to = object_store.access_to(self.url)
        options = tuple(sorted(object_store.client_options(to).items()))
        return _client(object_store.bucket_of(self.url), options, to.plain)

    @cached_property
    def _prefix(self) -> str:
        if not object_store.is_s3(self.url):
            return ""
        path = self.url.removeprefix(object_store.SCHEME).partition("/")[2].strip("/")
        return f"{path}/" if path else ""

    def head(self, name: str) -> Object | None:
        import obstore

        try:
            found = self._asked(lambda: obstore.head(self._store, self._prefix + name))
        except StoreProblem:
            self.tail(name, 1)  # what is refused without a reason here is told there
            raise
        return None if found is None else self._object(found)

    def get(self, name: str) -> bytes | None:
        import obstore

        found = self._asked(lambda: obstore.get(self._store, self._prefix + name).bytes())
        return None if found is None else bytes(found)

    def download(self, name: str, into: IO[bytes]) -> Object | None:
        """Writes a file's content into another one, piece by piece; what it is that was read."""
        import obstore

        def ask() -> Object:
            into.seek(0)
            into.truncate()
            answer = obstore.get(self._store, self._prefix + name)
            for piece in answer.stream():
                into.write(piece)
            return self._object(answer.meta)

        return self._asked(ask)

    def copy_from(self, url: str, name: str) -> bool:
        """Copies an object of the same bucket or another one into this folder, inside the store if it can do that."""
        import obstore

        source = Bucket(url.rpartition("/")[0])
        if source._store is self._store:
            path = source._prefix + url.rpartition("/")[2]

            def copy() -> bool:
                obstore.copy(self._store, path, self._prefix + name)
                return True

            return self._asked(copy) is True
        content = source.get(url.rpartition("/")[2])
        if content is not None:
            self.put(name, content)
        return content is not None

    def tail(self, name: str, length: int = TAIL) -> tuple[int, bytes] | None:
        """The size of a file and its last bytes."""
        import obstore

        def ask() -> tuple[int, bytes]:
            answer = obstore.get(self._store, self._prefix + name, options={"range": {"suffix": length}})
            return int(answer.meta["size"]), bytes(answer.bytes())

        return self._asked(ask)

    def put(self, name: str, content: bytes) -> None:
        import obstore

        self._asked(lambda: obstore.put(self._store, self._prefix + name, content, use_multipart=False))

    def create(self, name: str, content: bytes) -> bool:
        """Writes a file unless there is one. False: there is one."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        def ask() -> bool:
            try:
                obstore.put(self._store, self._prefix + name, content, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

        return bool(self._asked(ask))

    def upload(self, name: str, file: Path) -> bool:
        """Puts a local file here, unless there is another one. False: there is."""
        import obstore

        if file.stat().st_size > _AT_ONCE:
            if self.head(name) is not None:
                return False
            self._asked(lambda: obstore.put(self._store, self._prefix + name, file))
            return True
        return self.put_new(name, file.read_bytes())

    def put_new(self, name: str, content: bytes) -> bool:
        """Writes a file unless there is another one. False: there is."""
        # Refused although nobody else was there: the answer to a first try was lost.
        return self.create(name, content) or self.get(name) == content

    def inside(self, under: str) -> tuple[list[str], list[Object]]:
        """Names of folders and files directly in a folder."""
        import obstore

        prefix = self._prefix + (f"{under.strip('/')}/" if under.strip("/") else "")
        found = self._asked(lambda: obstore.list_with_delimiter(self._store, prefix))
        if found is None:
            return [], []
        folders = [str(name).rstrip("/").rpartition("/")[2] for name in found["common_prefixes"]]
        files = [self._object(each) for each in found["objects"] if each["path"].rstrip("/") + "/" != prefix]
        return folders, files

    def below(self, under: str) -> list[Object]:
        """All files in a folder and its folders."""
        import obstore

        prefix = self._prefix + (f"{under.strip('/')}/" if under.strip("/") else "")
        pages = self._asked(lambda: list(obstore.list(self._store, prefix)))
        return [self._object(each) for page in pages or () for each in page]

    def remove(self, *names: str) -> None:
        """Deletes files, all in one request; fine when they are not there."""
        import obstore

        if names:
            self._asked(lambda: obstore.delete(self._store, [self._prefix + name for name in names]))

    def remove_folder(self, name: str) -> None:
        self.remove(*(each.name for each in self.below(name)))

    def _object(self, found: Any) -> Object:
        name = str(found["path"]).removeprefix(self._prefix)
        return Object(name, int(found["size"]), found["last_modified"], found.get("e_tag"))

    def _asked(self, ask: Callable[[], _T]) -> _T | None:
        """None: there is no such file."""
        from obstore.exceptions import NotFoundError

        with explained(self.url):
            try:
                return ask()
            except (NotFoundError, FileNotFoundError) as why:
                if "NoSuchBucket" in str(why):
                    raise
                return None


@contextmanager
def explained(url: str) -> Iterator[None]:
    """What a library says about the store, in one sentence."""
    try:
        yield
    except StoreProblem:
        raise
    except Exception as why:
        raise StoreProblem(object_store.explained(url, str(why))) from why


@lru_cache(maxsize=32)
def _client(bucket: str, options: tuple[tuple[str, str], ...], plain: bool) -> Any:
    """Connections are kept: a new one costs more than a request."""
    from obstore.store import S3Store

    config: Any = dict(options)
    client: Any = {**_CLIENT, "allow_http": plain}
    return S3Store(bucket, config=config, client_options=client, retry_config=_RETRY)


@lru_cache(maxsize=32)
def _other(url: str) -> Any:
    """A store that is not S3: its settings are the variables that its own tools read."""
    from obstore.store import from_url

    return from_url(url)
