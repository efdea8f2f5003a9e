"""The Parts page in a browser, at what a command is about."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote, urlsplit

import typer

from partwise.cli.stop import Stop
from partwise.cli.views.show import say
from partwise.workspace import Workspace

OpenOption = Annotated[
    bool, typer.Option("--open", help="Open the Parts page of Airflow there (setting `airflow: {url: ...}`).")
]


def link(airflow: str, **shown: str | None) -> str:
    """The page within Airflow. `shown`: view, table, part, range."""
    site = airflow.rstrip("/")
    # Airflow puts the path of the page behind its own, and the page reads what follows `#`.
    page = f"{site}/plugin/parts{urlsplit(site).path}/partwise/"
    words = "&".join(f"{key}={quote(text, safe=':.')}" for key, text in shown.items() if text)
    return f"{page}#{words}" if words else page


def open_page(workspace: Workspace, **shown: str | None) -> None:
    """Opens the page, and says where it is for those whose terminal has no browser."""
    import webbrowser

    airflow = workspace.settings.airflow.url
    if airflow is None:
        raise Stop(
            "Where is Airflow? Write its address into partwise.yaml, for example airflow: {url: http://localhost:8080}, "
            "or set PARTWISE_AIRFLOW_URL."
        )
    address = link(airflow, **shown)
    say(address)
    webbrowser.open(address)
