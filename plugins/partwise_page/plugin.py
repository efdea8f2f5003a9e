"""The Parts page in Airflow's navigation and on the page of each DAG."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin


class PartsPagePlugin(AirflowPlugin):
    name = "partwise_page"

    @cached_property
    def fastapi_apps(self) -> list[Any]:  # type: ignore[override]
        # Every Airflow process loads its plugins, but only the API server asks for this.
        from partwise.page.place import PageWorkspace
        from partwise_page.airflow_gate import airflow_gate
        from partwise_page.app import create_app

        return [{"app": create_app(PageWorkspace(), airflow_gate()), "url_prefix": "/partwise", "name": "Partwise"}]

    @cached_property
    def external_views(self) -> list[Any]:  # type: ignore[override]
        from partwise_page.gate import path_of

        page = f"{path_of(conf.get('api', 'base_url', fallback=''))}/partwise/"
        icons = {"icon": f"{page}static/icon.svg", "icon_dark_mode": f"{page}static/icon_dark.svg"}
        return [
            {"name": "Parts", "href": page, "destination": "nav", "nav_top_level": True, "url_route": "parts", **icons},
            {
                "name": "Parts",
                "href": f"{page}?dag={{DAG_ID}}",
                "destination": "dag",
                "url_route": "dag_parts",
                **icons,
            },
        ]
