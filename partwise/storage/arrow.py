"""Tables of an object store as pyarrow sees them: DuckDB has no connector of its own, but reads what pyarrow reads.

pyarrow takes a second to import: only tables that are not in a local folder come here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from deltalake import Schema

from partwise import object_store
from partwise.storage.handle import File, Handle


def located(path: str) -> tuple[Any, str]:
    """pyarrow's file system (None: the local one) and the folder in it."""
    if not object_store.is_remote(path):
        return None, path.removeprefix("file://").rstrip("/")
    if object_store.is_s3(path):
        options = object_store.arrow_options(object_store.access_to(path))
        return _s3(tuple(sorted(options.items(), key=lambda pair: pair[0]))), path.removeprefix("s3://").rstrip("/")
    from pyarrow.fs import FileSystem  # type: ignore[import-untyped]

    system, base = FileSystem.from_uri(path)
    return system, base.rstrip("/")


def dataset(handle: Handle, files: Iterable[File]) -> Any:
    """These files of a table, with the table's schema. Nothing is read yet, and nothing is asked: sizes are known."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.dataset import FileSystemDataset, ParquetFileFormat  # type: ignore[import-untyped]
    from pyarrow.fs import LocalFileSystem

    system, base = located(handle.path)
    system, kind = system or LocalFileSystem(), ParquetFileFormat()
    fragments = [kind.make_fragment(f"{base}/{file.path}", system, file_size=file.size) for file in files]
    return FileSystemDataset(fragments, pa.schema(Schema.from_json(handle.schema).to_arrow()), kind, system)


@lru_cache(maxsize=8)
def _s3(options: tuple[tuple[str, Any], ...]) -> Any:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    return S3FileSystem(**dict(options), retry_strategy=AwsStandardS3RetryStrategy(max_attempts=6))
