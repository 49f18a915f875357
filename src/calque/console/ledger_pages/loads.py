"""Loads: the history of all tables or of one, a load with its files and its rejected rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from starlette.requests import Request

from calque.console.charts import Chart
from calque.console.page import Page, asked_for
from calque.console.text import number_text, shell_line, whole_number
from calque.errors import InvalidInput, NotFound
from calque.ledger import Ledger
from calque.ledger.history import LoadRow, errors_of, find_own_load, results_of
from calque.ledger.loaded_tables import LoadedTable, list_loaded_tables
from calque.ledger.recent import (
    DayOfLoads,
    LoadsAtWork,
    alive_or_dead,
    count_claims,
    loads_by_day,
    open_loads,
    recent_loads,
)

FILES_A_PAGE = 200
ERRORS_SHOWN = 200
LOADS_SHOWN = 100
DAYS = 30


class LoadPages:
    """The pages, over whatever ledger there is when they are asked for."""

    def __init__(self, ledger: Callable[[], Ledger | None]) -> None:
        self._ledger = ledger

    def show_loads(self, request: Request) -> Page:
        """The last loads; ``?table=`` those of one table."""
        ledger = self._ledger()
        if ledger is None:
            return Page("loads.html", "Loads", _nothing(), "calque load STAGE --into TABLE")
        found = list_loaded_tables(ledger)
        chosen = _find_table(found, request.query_params.get("table"))
        number = None if chosen is None else chosen.number
        at_work = alive_or_dead(ledger)
        held = count_claims(ledger, at_work.alive)
        data = {
            "tables": [_describe_table(each) for each in found],
            "chosen": None if chosen is None else _describe_table(chosen),
            "running": [
                {**describe_load(each, at_work), "files": held.get(each.load_id, 0)}
                for each in open_loads(ledger)
                if number in (None, each.table_number) and each.load_id in at_work.alive
            ],
            "loads": [
                describe_load(each, at_work)
                for each in recent_loads(ledger, table=number, limit=LOADS_SHOWN)
            ],
            "charts": charts_of(loads_by_day(ledger, DAYS, table=number)),
        }
        if chosen is None:
            return Page("loads.html", "Loads", data, "calque tables")
        command = shell_line("calque", "history", chosen.spelling)
        return Page("loads.html", f"Loads of {chosen.spelling}", data, command)

    def show_load(self, request: Request) -> Page:
        """One load: its files, and the first of its rejected rows."""
        load_id, after = asked_for(request, "id"), asked_for(request, "after")
        ledger = self._ledger()
        if ledger is None:
            raise NotFound(f"there is no load {load_id!r}: nothing was loaded yet")
        load = find_own_load(ledger, load_id)
        rows = results_of(ledger, load_id, after=after)
        files = [asdict(each) for each in islice(rows, FILES_A_PAGE + 1)]
        more = files[FILES_A_PAGE - 1]["location"] if len(files) > FILES_A_PAGE else None
        data = {
            "load": describe_load(load, alive_or_dead(ledger)),
            "files": files[:FILES_A_PAGE],
            "more": more,
            "held": count_claims(ledger, [load_id]).get(load_id, 0),
            "errors": list(islice(errors_of(ledger, load_id), ERRORS_SHOWN)),
        }
        return Page("load.html", f"Load {load_id}", data, shell_line("calque", "errors", load_id))


def describe_load(load: LoadRow, at_work: LoadsAtWork) -> dict[str, Any]:
    """A load, how long it took, and what to do about it."""
    died = load.load_id in at_work.dead
    told = {**asdict(load), "state": "DIED" if died else load.state}
    retry = shell_line("calque", "sql", load.statement) if load.statement else None
    troubled = load.errors > 0 or load.state == "ABORTED"
    advice = shell_line("calque", "errors", load.load_id) if troubled else None
    return {
        **told,
        "seconds": load.seconds,
        "retry": retry,
        "advice": retry if died else advice,
    }


def charts_of(days: Sequence[DayOfLoads]) -> list[Chart]:
    """Rows and errors, day by day."""
    return [
        Chart(
            "Rows loaded",
            [(each.day.isoformat(), each.rows, number_text(each.rows)) for each in days],
        ),
        Chart(
            "Rows rejected",
            [(each.day.isoformat(), each.errors, number_text(each.errors)) for each in days],
            kind="bad",
        ),
    ]


def _describe_table(table: LoadedTable) -> dict[str, Any]:
    return {
        "number": table.number,
        "table": table.spelling,
        "loads": table.loads,
        "rows": table.rows,
        "last_load": table.last_load_at,
    }


def _find_table(found: Sequence[LoadedTable], asked: str | None) -> LoadedTable | None:
    if not asked:
        return None
    number = whole_number(asked)
    if number is None:
        raise InvalidInput(f"{asked!r} is no number of a table")
    for each in found:
        if each.number == number:
            return each
    raise NotFound(f"there is no table {asked} in the ledger", hint="See the list of loads.")


def _nothing() -> dict[str, Any]:
    return {"tables": [], "chosen": None, "running": [], "loads": [], "charts": []}
