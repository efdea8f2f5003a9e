"""The content of files to documents and problems, each looked at alone."""

from __future__ import annotations

import re

from partwise.definitions.build import build
from partwise.definitions.definitions import Definition
from partwise.definitions.meaning import Document
from partwise.definitions.names import bad_name, is_ours
from partwise.definitions.problems import Problem, list_of
from partwise.definitions.yaml.model import DOCUMENTS
from partwise.definitions.yaml.shape import Reporter, shown, validate
from partwise.definitions.yaml.text import TextFile, YamlNode, YamlProblem, compose, documents, duplicates, value
from partwise.spelling import did_you_mean

_NAMED = re.compile(r"^(?:source|dimension|view)[ \t]*:[ \t]*['\"]?([A-Za-z_]\w*)", re.MULTILINE)
FAULT_HINT = "this is a fault of Partwise; please report it with the definition"


class DefinitionsReading:
    """Collects documents and problems of all files; `partwise.compile.assemble` looks at them together."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.entries: list[Document] = []
        #: Names of documents that are too broken for more: who reads them is not at fault.
        self.lost: set[str] = set()

    def file(self, name: str, content: bytes) -> None:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as why:
            readable = content[: why.start].decode("utf-8-sig")
            line, column = TextFile(name, readable).at(len(readable))
            hint = "save the file as UTF-8"
            message = f"the byte 0x{content[why.start]:02X} is not UTF-8 text"
            self.problems.append(Problem(name, line, column, "encoding", message, hint))
            self.lost |= {found.lower() for found in _NAMED.findall(content.decode("latin-1"))}
            return
        file = TextFile(name, text)
        for offset, piece in documents(text):
            report = Reporter(file)
            try:
                for node in compose(piece, offset):
                    self._document(node, file)
            except YamlProblem as why:
                self.problems.append(report(why.offset, why.code, str(why), why.hint))
                self.lost |= {found.lower() for found in _NAMED.findall(piece)}
            except Exception as why:  # our own fault: say so, and go on with the other documents
                self.problems.append(report(offset, "internal", fault(why), FAULT_HINT))
                self.lost |= {found.lower() for found in _NAMED.findall(piece)}

    def _document(self, node: YamlNode, file: TextFile) -> None:
        report = Reporter(file)
        data = value(node)
        if data is None:
            return  # an empty document, or one with comments only
        if not isinstance(data, dict):
            hint = "a document starts with source:, dimension: or view:"
            self.problems.append(report(node, "not-a-definition", f"expected a definition, found {shown(data)}", hint))
            return
        kinds = [kind for kind in DOCUMENTS if kind in data]
        self.lost |= {str(data[kind]).lower() for kind in kinds}
        if len(kinds) != 1:
            self.problems.append(_no_kind(kinds, list(data), node, report))
            return
        name = data[kinds[0]]
        report.table = name if isinstance(name, str) else None
        found = [
            report(
                again,
                "duplicate-key",
                f"{again.text} is written twice",
                f"the first is in line {file.at(first.start)[0]}",
            )
            for first, again in duplicates(node)
        ]
        if isinstance(name, str) and (why := bad_name(name)):
            found.append(report(node.get(kinds[0]) or node, "bad-name", why))
        if isinstance(name, str) and is_ours(name):
            said = f"{name} is the name of a DAG of Partwise itself"
            found.append(report(node.get(kinds[0]) or node, "reserved-name", said, "call it something else"))
        shaped = validate(kinds[0], data, node, report)
        self.problems += [*found, *shaped.problems]
        if shaped.document is not None:
            built = build(shaped.document, node, report, shaped.without)
            self.problems += built.problems
            self.entries.append(Document(built, node, report))

    def tables(self) -> dict[str, Document]:
        """By lower-case name; the second of two of one name is a problem."""
        found: dict[str, Document] = {}
        for entry in self.entries:
            first = found.setdefault(entry.definition.name.lower(), entry)
            if first is not entry:
                self.problems.append(_second(entry, first.definition))
        return found

    def broken(self) -> frozenset[str]:
        """Names (lower case) with errors."""
        return frozenset(p.table.lower() for p in self.problems if p.severity == "error" and p.table is not None)


def fault(why: Exception) -> str:
    return f"Partwise failed on this definition: {type(why).__name__}: {why}"


def _no_kind(kinds: list[str], keys: list[str], node: YamlNode, report: Reporter) -> Problem:
    if kinds:
        key = node.key(kinds[1]) or node
        message = f"{list_of(kinds, 'and')} in one document"
        return report(key, "not-a-definition", message, "separate two definitions by a line with ---")
    first = keys[0] if keys else ""
    hint = next(filter(None, (did_you_mean(key, DOCUMENTS) for key in keys[:3])), "")
    message = f"neither source, dimension nor view is given (the first key is {shown(first)})"
    return report(node, "not-a-definition", message, hint or "start the document with one of them and a name")


def _second(entry: Document, first: Definition) -> Problem:
    name = entry.definition.name
    kind = type(entry.definition).__name__.lower()
    at = entry.node.get(kind) or entry.node
    same = "is" if name == first.name else f"differs only in case from {first.name}, which is"
    return entry.report(at, "duplicate-name", f"{name} {same} already defined at {first.place}", "names must differ")
