"""The endpoints of the Parts page. Small JSON answers from the ledger; what they mean stands in `partwise.page`."""

# No `from __future__ import annotations` here: FastAPI reads the annotations, and they name local variables.

import zlib
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import DBAPIError

from partwise.fresh.asked.refused import Refused
from partwise.fresh.of_part import EstimatedPart, estimated
from partwise.page.ask import EARLIEST, LATEST, MOST_CELLS, BadAsk, part_of, table_of
from partwise.page.changed import ChangedParts, changed
from partwise.page.heat import MARKED, Heat, heat, steps_under_way
from partwise.page.lineage import Lineage, lineage
from partwise.page.part import HeatCell, PartDetails, cell, details
from partwise.page.place import PageWorkspace, Unavailable
from partwise.page.preview import BackfillPreview, preview
from partwise.page.tab import Tab, tab
from partwise.tables import Table
from partwise_page.described import add_description
from partwise_page.files import add_files
from partwise_page.gate import BACKFILL_DAG, Gate, from_our_page

Moment = Annotated[int, Field(ge=EARLIEST, le=LATEST)]
Begin = Query(alias="from", description="Seconds since 1970. With `to`; without both, the newest parts.")
End = Query(alias="to", description="Seconds since 1970, not included.")
Within = Annotated[int, Query(ge=1, le=LATEST, description="Changes of so many last seconds count; a day without it.")]
TableName = Annotated[str, Query(max_length=255, description="Name of a table.")]
RangeText = Annotated[
    str, Query(max_length=100, description="A part, A..B (both included), A.. or ..B, in UTC.", examples=["2026-10-03"])
]


class WantedBackfill(BaseModel):
    """A backfill that somebody asks for."""

    table: str = Field(max_length=255)
    range: str = Field(max_length=100, description="A part, A..B (both included), A.. or ..B, in UTC.")
    upstream: bool = Field(False, description="Also what it is computed from.")
    downstream: bool = Field(True, description="Also what follows from it.")


class Started(BaseModel):
    """The run that does it."""

    dag: str
    run: str


class Rights(BaseModel):
    """What this user may do with a table."""

    backfill: bool


class ProblemDetail(BaseModel):
    """One sentence."""

    detail: str


#: What every route may answer besides.
ANSWERS: dict[int | str, dict[str, Any]] = {
    401: {"model": ProblemDetail, "description": "You are not logged in."},
    403: {"model": ProblemDetail, "description": "Not allowed."},
    422: {"model": ProblemDetail, "description": "A parameter cannot be understood; the detail is a sentence."},
    503: {"model": ProblemDetail, "description": "There is no workspace or no ledger."},
}


def create_app(place: PageWorkspace, gate: Gate) -> FastAPI:
    """The application. Every route asks for the user, the files of the page included."""
    app = FastAPI(
        title="Partwise: the Parts page",
        description="The endpoints of the page. Read-only, except `POST /backfill`.",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(gate.user)],
        responses=ANSWERS,
    )
    _handle_problems(app)
    add_files(app, gate)
    add_description(app)

    @app.get("/heat", summary="The heat-map: states of all tables over time")
    def get_heat(
        request: Request,
        response: Response,
        begin: Annotated[Moment | None, Begin] = None,
        end: Annotated[Moment | None, End] = None,
        cells: Annotated[int, Query(ge=1, le=MOST_CELLS, description="At most so many cells in a row.")] = 240,
        within: Within = MARKED,
    ) -> Heat:
        with place.snapshot() as snapshot:
            # Leases end and retries begin without a transaction: a minute is the longest that an answer holds.
            # Steps note how far they are without one, too.
            steps = zlib.crc32(repr(steps_under_way(snapshot)).encode())
            tag = f'"{snapshot.r.seq}.{int(snapshot.now) // 60}.{steps}"'
            if request.headers.get("if-none-match") == tag:
                raise HTTPException(304)
            response.headers["etag"] = tag
            response.headers["cache-control"] = "no-cache"
            return heat(snapshot, begin, end, cells, within)

    @app.get("/cell", summary="A cell of the heat-map: parts by state, rows, newest change")
    def get_cell(
        table: TableName,
        begin: Annotated[Moment, Begin],
        end: Annotated[Moment, End],
        within: Within = MARKED,
    ) -> HeatCell:
        with place.snapshot() as snapshot:
            return cell(snapshot, table_of(snapshot.graph, table), begin, end, within)

    @app.get("/part", summary="Everything about one part: why, revisions, what it was computed from, what it feeds")
    def get_part(
        table: TableName,
        part: Annotated[
            str | None, Query(max_length=50, description="As 2026-10-03T10:05; not for dimensions.")
        ] = None,
        within: Within = MARKED,
    ) -> PartDetails:
        with place.snapshot() as snapshot:
            found = table_of(snapshot.graph, table)
            return details(snapshot, found, part_of(found, part), within)

    @app.get("/estimate", summary="What the sample of a view says of a part before it is refreshed")
    def get_estimate(
        table: TableName, part: Annotated[str | None, Query(max_length=50, description="As 2026-10-03T10:05.")] = None
    ) -> EstimatedPart:
        definitions = place.definitions()
        with place.snapshot() as snapshot:
            found = table_of(snapshot.graph, table)
            p = part_of(found, part)
        try:
            return estimated(place.ledger(), definitions, place.workspace().warehouse, found, p)
        except Refused as why:
            raise BadAsk(f"{why.message}.") from None

    @app.get("/lineage", summary="All tables, and which reads which")
    def get_lineage(helpers: bool = False) -> Lineage:
        with place.snapshot() as snapshot:
            return lineage(snapshot, helpers)

    @app.get("/table", summary="A table's own tab: definition, queries, strategy, charts, lateness, checks")
    def get_table(table: TableName) -> Tab:
        definitions = place.definitions()
        with place.snapshot() as snapshot:
            return tab(snapshot, definitions, table_of(snapshot.graph, table), place.workspace().folder)

    @app.get("/changes", summary="Parts of a table whose content changed lately, newest change first")
    def get_changes(table: TableName, within: Within = MARKED) -> ChangedParts:
        with place.snapshot() as snapshot:
            return changed(snapshot, table_of(snapshot.graph, table), snapshot.now - within)

    @app.get("/backfill", summary="What a backfill would do; nothing is started")
    def get_backfill(
        table: TableName, range: RangeText, upstream: bool = False, downstream: bool = True
    ) -> BackfillPreview:
        with place.snapshot() as snapshot:
            return preview(snapshot, table_of(snapshot.graph, table), range, upstream, downstream)

    @app.get("/rights", summary="What the user may do with a table")
    def get_rights(table: TableName, user: Annotated[Any, Depends(gate.user)]) -> Rights:
        with place.snapshot() as snapshot:
            found = table_of(snapshot.graph, table)
        return Rights(backfill=_may(gate, user, found))

    @app.post("/backfill", summary="Start a backfill, with the permission to run that view's DAG")
    async def post_backfill(
        wanted: WantedBackfill, request: Request, user: Annotated[Any, Depends(gate.user)]
    ) -> Started:
        from_our_page(request, gate.origin)
        values = await run_in_threadpool(_checked, place, gate, user, wanted)
        return Started(dag=BACKFILL_DAG, run=await gate.trigger(request, BACKFILL_DAG, values))

    return app


def _checked(place: PageWorkspace, gate: Gate, user: Any, wanted: WantedBackfill) -> dict[str, Any]:
    """The form of the backfill DAG, filled in. Refuses what the DAG would refuse, before there is a run."""
    with place.snapshot() as snapshot:
        table = table_of(snapshot.graph, wanted.table)
        if not _may(gate, user, table):
            raise HTTPException(403, f"You have read-only access to {table.name}.")
        meant = preview(snapshot, table, wanted.range, wanted.upstream, wanted.downstream)
    return {
        "table": table.name,
        "range": meant.range,
        "upstream": wanted.upstream,
        "downstream": wanted.downstream,
    }


def _may(gate: Gate, user: Any, table: Table) -> bool:
    """A helper has no DAG of its own: who may run its view may run it."""
    return gate.may_trigger(user, table.helper_of or table.name) and gate.may_trigger(user, BACKFILL_DAG)


def _handle_problems(app: FastAPI) -> None:
    """Every refusal is JSON with one sentence, and no stack trace."""

    @app.exception_handler(BadAsk)
    def bad_ask(_request: Request, why: BadAsk) -> JSONResponse:
        return JSONResponse({"detail": str(why)}, 422)

    @app.exception_handler(Unavailable)
    def unavailable(_request: Request, why: Unavailable) -> JSONResponse:
        return JSONResponse({"detail": str(why)}, 503)

    @app.exception_handler(DBAPIError)
    def unreachable(_request: Request, why: DBAPIError) -> JSONResponse:
        return JSONResponse({"detail": f"The ledger does not answer: {str(why.orig).strip().splitlines()[0]}"}, 503)

    @app.exception_handler(RequestValidationError)
    def invalid(_request: Request, why: RequestValidationError) -> JSONResponse:
        return JSONResponse({"detail": " ".join(_sentence(problem) for problem in why.errors())}, 422)


def _sentence(problem: Any) -> str:
    where = ".".join(str(word) for word in problem["loc"][1:]) or "the body"
    found = problem.get("input")
    shown = f" (found {str(found)[:60]!r})" if isinstance(found, str | int | float | bool) else ""
    message = str(problem["msg"])
    return f"{where}: {message[:1].lower()}{message[1:]}{shown}."
