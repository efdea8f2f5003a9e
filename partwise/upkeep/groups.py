"""Which files to merge. Afterwards every file has parts of its own, so that one part is in one file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from partwise.storage import File
from partwise.storage.handle import is_cut

#: Bytes of a merged file. A late row rewrites the file that it is in, so larger is not better.
TARGET = 32 << 20


def groups(files: Sequence[File], is_old: Callable[[File], bool], target: int = TARGET) -> list[tuple[File, ...]]:
    """Files to be merged with each other, by ascending parts.

    Files whose parts overlap go together. Neighbours go together up to the target size, unless one of them
    is so large already that merging would mostly copy it: each byte is then copied a few times in its life.
    """
    found: list[tuple[File, ...]] = []
    run: list[tuple[File, ...]] = []

    def flush() -> None:
        found.extend(_worth(run))
        run.clear()

    for cluster in _overlapping([file for file in files if file.lo is not None]):
        size = sum(file.size for file in cluster)
        whole = (len(cluster) == 1 and size >= target) or (len(cluster) > 1 and is_cut(cluster))
        if whole or not all(is_old(file) for file in cluster):
            flush()
            continue
        if run and sum(file.size for each in run for file in each) + size > target:
            flush()
        run.append(cluster)
    flush()
    return found


def _overlapping(files: Sequence[File]) -> list[tuple[File, ...]]:
    clusters: list[list[File]] = []
    last = 0
    for file in sorted(files, key=lambda file: (file.lo, file.hi, file.path)):
        assert file.lo is not None
        assert file.hi is not None
        if clusters and file.lo <= last:
            clusters[-1].append(file)
            last = max(last, file.hi)
        else:
            clusters.append([file])
            last = file.hi
    return [tuple(cluster) for cluster in clusters]


def _worth(run: Sequence[tuple[File, ...]]) -> list[tuple[File, ...]]:
    if sum(len(cluster) for cluster in run) < 2:
        return []
    sizes = [sum(file.size for file in cluster) for cluster in run]
    largest = max(range(len(run)), key=lambda at: sizes[at])
    if len(run) == 1 or (sum(sizes) - sizes[largest]) * 3 >= sizes[largest]:
        return [tuple(file for cluster in run for file in cluster)]
    alone = _worth([run[largest]]) if len(run[largest]) > 1 else []
    return [*_worth(run[:largest]), *alone, *_worth(run[largest + 1 :])]
