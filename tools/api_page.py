"""docs/api.md from the code: `python tools/api_page.py > docs/api.md`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import FunctionType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import partwise
from partwise import api

HEAD = """# Python API

Made from the code by `python tools/api_page.py > docs/api.md`.

`partwise.open` opens a workspace in a program: tables as Arrow, state and plan as typed objects, all without Spark, and
`run`, which loads and computes. It keeps the promises of the commands: `query` and `read` see one snapshot and only parts
that exist, and refuse a time that retention no longer keeps. Nothing but `run` writes.

```python
import partwise

reader = partwise.open("shop")
print(reader.query("SELECT * FROM revenue ORDER BY part_timestamp").to_pylist())
hour = reader.read("revenue", "2026-10-03T10:00")  # one part, or a range A..B
yesterday = reader.as_of("2026-10-02T00:00").read("revenue")  # as it was then
late = [table.name for table in reader.status() if table.stale or table.missing]
steps = reader.plan("revenue").steps
done = reader.run()  # loads new files and computes what is ready; `partwise run --watch 30s` does so again and again
print([(step.table, step.parts, step.rows) for step in done.steps], done.problems)
```

`run` pays for its start once in a process: the first call that finds work starts Spark, later ones use it. In a process
that has a session of Spark already, that one is used, with the settings that results depend on (UTC, above all).

## What stays

Everything on this page is public; everything else may change in any release. A public name, a command, an option, a YAML
key or a JSON key is deprecated for at least one minor release before it goes: it keeps working, warns
(`DeprecationWarning` in Python, a line on standard error in commands), and CHANGELOG.md names what replaces it.
Releases before 1.0 raise the minor version for such a removal; a ledger of an earlier release is always migrated.
"""


def page() -> str:
    found = [HEAD, section("partwise.open", signature(partwise.open), partwise.open)]
    for kind in (
        api.Reader,
        api.PastReader,
        api.TableState,
        api.WorkPlan,
        api.PlannedStep,
        api.BlockedParts,
        api.RunResult,
        api.LoadedTable,
        api.FinishedStep,
        api.PartwiseError,
    ):
        found.append(section(kind.__name__, fields(kind), kind))
        methods = [m for name, m in vars(kind).items() if not name.startswith("_") and isinstance(m, FunctionType)]
        for name, member in vars(kind).items():
            if isinstance(member, property):
                found.append(f"**`.{name}`** {inspect.getdoc(member)}\n")
        found += [f"**`.{method.__name__}{signature(method)}`**\n\n{inspect.getdoc(method)}\n" for method in methods]
    return "\n".join(found)


def section(title: str, detail: str, member: object) -> str:
    return f"## {title}\n\n" + (f"`{detail}`\n\n" if detail else "") + f"{inspect.getdoc(member)}\n"


def signature(function: FunctionType) -> str:
    shown = inspect.signature(function)
    inputs = [item for name, item in shown.parameters.items() if name != "self"]
    return str(shown.replace(parameters=inputs)).replace("'", "")


def fields(kind: type) -> str:
    return ", ".join(f"{name}: {kind.__annotations__[name]}" for name in getattr(kind, "__slots__", ()))


if __name__ == "__main__":
    print(page(), end="")
