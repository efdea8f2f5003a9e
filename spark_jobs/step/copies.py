"""Small files of an object store on the disk of this machine, for a Spark that runs here as well.

Hadoop's connector takes about fifty requests to write one file and five to read one. A driver that is its own cluster
writes to the disk instead, and one request puts the file into the store; what was written or fetched once is read from the
disk as long as the process lives. Files never change, so a copy is as good as the file. Clusters read and write the store
themselves.
"""

from __future__ import annotations

import tempfile
import threading
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from partwise.object_store import is_s3
from partwise.storage import File, Handle
from partwise.storage.remote import Bucket
from spark_jobs.session.late import started

#: Bytes. Larger files are read where they are: most of them is skipped.
SMALL = 8 << 20
#: Bytes that all copies of a process may take.
BUDGET = 512 << 20
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass
class Copies:
    """The copies of one process. They go when it ends."""

    budget: int = BUDGET
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="partwise-")

    def place(self, handle: Handle, name: str) -> Path:
        """Where a file or folder of a table is, if it is here."""
        return Path(self._folder.name) / handle.path.removeprefix("s3://") / name

    def uri(self, handle: Handle, file: File) -> str:
        """What Spark reads: a copy, made if the file is small, or the file itself."""
        place = self.place(handle, file.path)
        if not place.exists():
            if file.size > SMALL or not self._takes(file.size):
                return f"{handle.path.rstrip('/')}/{file.path}"
            _fetch(handle, file, place)
        return str(place)

    def keep_or_drop(self, handle: Handle, file: File) -> None:
        """After it was written and put into the store: read from here, or from there."""
        if file.size > SMALL or not self._takes(file.size):
            self.place(handle, file.path).unlink()

    def keep(self, handle: Handle, file: File, content: bytes) -> None:
        """What was put into the store without Spark: steps that read it need not fetch it."""
        if file.size <= SMALL and self._takes(file.size):
            place = self.place(handle, file.path)
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = place.with_name(f".{place.name}")
            draft.write_bytes(content)
            draft.replace(place)

    def _takes(self, size: int) -> bool:
        with self._lock:
            if size > self.budget:
                return False
            self.budget -= size
            return True


def _fetch(handle: Handle, file: File, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".", delete=False) as part:
        found = Bucket(handle.path).download(file.path, part)
    if found is None or found.size != file.size:
        Path(part.name).unlink()
        raise FileNotFoundError(f"{handle.path}/{file.path} is missing or has another size than the log says")
    Path(part.name).replace(place)


_copies = Copies()
_here: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def copies_for(spark: SparkSession, handle: Handle) -> Copies | None:
    """None: Spark reads and writes the table where it is."""
    return _copies if is_s3(handle.path) and runs_here(spark) else None


def keep(handle: Handle, file: File, content: bytes) -> None:
    """Keep a copy of a new file if a Spark of this process may read it."""
    if is_s3(handle.path) and any(_here.values()):
        _copies.keep(handle, file, content)


def runs_here(spark: SparkSession) -> bool:
    """Whether the driver is its own cluster and sees the disk of this machine as this user does."""
    spark = started(spark)
    if spark not in _here:
        local = (spark.conf.get("spark.master", "") or "").startswith("local")
        _here[spark] = local and (not type(spark).__module__.startswith("pyspark.sql.connect") or _sees_our_disk(spark))
    return _here[spark]


def _sees_our_disk(spark: SparkSession) -> bool:
    """A server of Spark Connect may be anywhere, even behind a loopback address: it is shown a file."""
    if spark.client.host not in _LOOPBACK:
        return False
    with tempfile.TemporaryDirectory(prefix="partwise-") as folder:
        token = uuid.uuid4().hex
        (Path(folder) / "seen").write_text(token)
        try:
            return [row[0] for row in spark.read.text(f"{folder}/seen").collect()] == [token]
        except PySparkException:
            return False


def cannot_write_here(spark: SparkSession) -> None:
    """Spark has written to a disk, but not to ours: from now on it writes to the store."""
    _here[spark] = False
