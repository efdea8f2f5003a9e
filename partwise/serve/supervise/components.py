"""Which processes are started, in which order, and how to see that one is ready."""

from __future__ import annotations

from dataclasses import dataclass

from partwise.serve.site.site import Site


@dataclass(frozen=True, slots=True)
class Component:
    """One process. It is started when all it `needs` are ready: up and answering, or done if `once`."""

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    url: str | None = None  # ready when this answers; None: as soon as it runs
    once: bool = False  # ready when it has ended with code 0
    optional: bool = False  # the others do without it, should it fail
    patience: float = 300.0  # seconds until it must be ready; a busy machine needs many times what a quiet one does


def components(site: Site, migrate: bool = True) -> tuple[Component, ...]:
    """In the order of their starts. What the first page of the UI needs comes first: two cores start them all."""

    def airflow(*words: str) -> tuple[str, ...]:
        return (site.python, "-m", "airflow", *words)

    def module(name: str, *words: str) -> tuple[str, ...]:
        return (site.python, "-m", name, *words)

    conf = tuple(word for name, value in site.spark_conf for word in ("--conf", f"{name}={value}"))
    ui = ("--conf", "spark.ui.enabled=true", "--conf", f"spark.ui.port={site.ports.spark_ui}")
    migrated = ("migrate",) if migrate else ()
    found = [
        *([Component("migrate", airflow("db", "migrate"), once=True)] if migrate else []),
        Component(
            "spark",
            module("spark_jobs.session.connect", "--master", site.master, "--port", str(site.ports.spark), *ui, *conf),
            url=site.remote,
        ),
        Component("api-server", airflow("api-server"), migrated, url=f"{site.address}/api/v2/monitor/health"),
        # A first write costs ten times the second one: nobody should wait for it.
        Component(
            "warm-up", module("spark_jobs.session.warm", "--remote", site.remote), ("spark",), once=True, optional=True
        ),
        Component("dag-processor", airflow("dag-processor"), (*migrated, "spark")),
        Component("pools", module("partwise.serve.site.pools", str(site.spark_steps)), ("api-server",), once=True),
        # A task that starts before the api-server answers fails at once; a task without its pool never starts.
        Component("scheduler", airflow("scheduler", "--skip-serve-logs"), ("api-server", "pools", "spark")),
        Component("triggerer", airflow("triggerer", "--skip-serve-logs"), ("api-server",)),
        Component("clean", module("partwise.serve.clean", str(site.logs / "tasks")), ("api-server",), optional=True),
    ]
    if site.feed is not None:
        landing = str(site.workspace / "landing")
        found.append(Component("feed", module("partwise.serve.feed", landing, "--every", str(site.feed))))
    return tuple(found)


#: The components in the order of their ends: who gives work first, who carries it out last. All of one row at once.
STOP = (
    ("feed", "scheduler", "dag-processor", "triggerer", "warm-up", "pools", "clean", "migrate"),
    ("api-server", "spark"),
)
