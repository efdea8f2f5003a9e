"""Commands as a person types them, in this process: one Spark session serves them all."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from partwise.cli import main


class Shell:
    def __init__(self, at: Path, definitions: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        self.at, self._capsys, self.err = at, capsys, ""
        (at / "view_defs").mkdir(parents=True)
        (at / "landing").mkdir()
        (at / "partwise.yaml").write_text("")
        (at / "view_defs" / "all.yaml").write_text(definitions)
        monkeypatch.chdir(at)
        monkeypatch.delenv("COLUMNS", raising=False)  # whoever runs the tests may have a narrow terminal

    def __call__(self, *words: str, code: int | None = 0) -> str:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = self._capsys.readouterr()
        self.err = str(err)
        assert code in (None, ended.value.code), f"{words}: {err}{out}"
        return str(out) if ended.value.code in (0, 1) else str(err)

    def json(self, *words: str, code: int | None = 0) -> Any:
        return json.loads(self(*words, "--json", code=code))

    def land(self, name: str, *rows: str) -> None:
        (self.at / "landing" / name).write_text("\n".join(rows) + "\n")

    def moment(self) -> str:
        """A whole second after all that was done so far and before all that follows, for `--as-of`."""
        second = int(time.time()) + 1
        time.sleep(second + 0.05 - time.time())
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
