"""YAML files to a Program: every problem of every file at once, and whatever is fine can be used.

files -> texts -> documents -> shape -> definition -> translation -> meaning -> Program
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from partwise.compile import cache
from partwise.compile.program import Program
from partwise.definitions.problems import Problem


def load(paths: str | Path | Iterable[str | Path]) -> Program:
    """The program of definitions in files, and in folders with *.yaml and *.yml files. Never raises.

    What was read once is remembered (see `cache`), so that commands start without a parser.
    """
    given = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    texts: dict[str, bytes] = {}
    problems: list[Problem] = []
    for path in given:
        try:
            files = _files_in(path)
        except OSError as why:
            problems.append(Problem(str(path), 1, 1, "cannot-read", f"cannot be read: {why.strerror or why}"))
            continue
        for file in files:
            try:
                texts[str(file)] = file.read_bytes()
            except OSError as why:
                problems.append(Problem(str(file), 1, 1, "cannot-read", f"cannot be read: {why.strerror or why}"))
    if problems:
        return load_texts(texts, problems)
    key = cache.key(texts)
    found = cache.get(key)
    if found is None:
        found = load_texts(texts)
        cache.put(key, found)
    return found


def _files_in(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = (p for p in path.rglob("*") if p.suffix in (".yaml", ".yml") and p.is_file())
    return sorted(p for p in found if not any(part.startswith(".") for part in p.relative_to(path).parts))


def load_texts(texts: Mapping[str, bytes], before: Iterable[Problem] = ()) -> Program:
    """The same from the contents of files, by file name."""
    # Imported here: pydantic and the YAML parser are not needed for what is remembered.
    from partwise.compile.assemble import assemble
    from partwise.definitions.reading import DefinitionsReading

    reading = DefinitionsReading(list(before))
    for name, content in texts.items():
        reading.file(name, content)
    return assemble(reading)
