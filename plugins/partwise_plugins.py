"""For Airflow's plugins folder: the plugins of a checkout or an image, unless the package is installed with them.

An installed package names them as entry points. Airflow would report each of them twice if this file did, too.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution


def _are_entry_points() -> bool:
    try:
        return any(point.group == "airflow.plugins" for point in distribution("partwise").entry_points)
    except PackageNotFoundError:
        return False


if not _are_entry_points():
    from partwise_airflow.plugin import PartwisePlugin as PartwisePlugin
    from partwise_page.plugin import PartsPagePlugin as PartsPagePlugin
