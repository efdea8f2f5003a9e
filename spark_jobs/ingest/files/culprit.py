"""Which file it was that Spark could not read: the others are loaded without it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from spark_jobs.ingest.files.find import FoundFile
from spark_jobs.ingest.files.layout import Layout
from spark_jobs.ingest.files.links import LinkedFiles
from spark_jobs.retry import SPARK_ERRORS, is_infrastructure, message_of

_NAMED = re.compile(r"/(\d+)\.(?:csv|json|parquet)")
#: Reads the rows of these files.
Reader = Callable[[Layout, Sequence[str]], DataFrame]


class FileFailed(Exception):
    """Spark cannot read one file, though it looked whole."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name, self.message = name, message


def culprit(reader: Reader, links: LinkedFiles, ids: Mapping[int, FoundFile], why: Exception) -> Exception:
    """What to raise instead of `why`: FileFailed with the file, if one can be found that fails alone."""
    if is_infrastructure(why):
        return why
    text = message_of(why)
    for match in _NAMED.finditer(text):
        found = ids.get(int(match[1]))
        if found is not None:
            return FileFailed(found.name, _first_line(text))
    return _alone(reader, links, ids) or why


def _alone(reader: Reader, links: LinkedFiles, ids: Mapping[int, FoundFile]) -> FileFailed | None:
    """Halves of the files of a layout are read until one file is left: a few jobs, however many files there are."""
    for layout in filter(lambda layout: layout.has_rows, links.folders):
        numbers = [number for number, (of, _) in links.paths.items() if of == layout]
        said = _fails(reader, links, numbers)
        while said is not None and len(numbers) > 1:
            half = len(numbers) // 2
            first = _fails(reader, links, numbers[:half])
            numbers, said = (
                (numbers[:half], first) if first else (numbers[half:], _fails(reader, links, numbers[half:]))
            )
        if said is not None:
            return FileFailed(ids[numbers[0]].name, said)
    return None


def _fails(reader: Reader, links: LinkedFiles, numbers: Sequence[int]) -> str | None:
    """What Spark says if it reads these files to the end, and nothing else; None if it can."""
    layout, _ = links.paths[numbers[0]]
    try:
        reader(layout, [links.paths[n][1] for n in numbers]).write.format("noop").mode("overwrite").save()
    except SPARK_ERRORS as why:
        if is_infrastructure(why):
            raise
        return _first_line(message_of(why))
    return None


def _first_line(text: str) -> str:
    return text.split("\n")[0][:500]
