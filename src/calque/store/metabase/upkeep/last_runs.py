"""The last reports of each service: what doctor, console and metrics show between two runs.

The row of a service is its last report. Beside it stands a row with its last ten, for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select

from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.schema import upkeep_runs
from calque.store.metabase.upkeep.upsert import upsert_statement

NOTE_RUN = upsert_statement("note a run of upkeep", upkeep_runs)
LAST_RUN = Statement(
    "last run of upkeep",
    select(upkeep_runs.c.finished_at, upkeep_runs.c.report).where(
        upkeep_runs.c.service == bindparam("of_service")
    ),
)


class LastRun(NamedTuple):
    """When a service ran last, and what it reported."""

    finished_at: int
    report: dict[str, Any]


KEPT_RUNS = 10


def note_run(
    database: Database, service: str, report: Mapping[str, Any], *, among_past: bool = True
) -> None:
    """Keep a report in place of the one before, and among the last ten."""
    text = json.dumps(report, default=str)

    def work(transaction: Transaction) -> None:
        row = {"service": service, "finished_at": transaction.now, "report": text}
        transaction.run(NOTE_RUN, row)
        if report and among_past:
            rows = transaction.rows(LAST_RUN, {"of_service": _past(service)})
            earlier = json.loads(rows[0][1]) if rows else []
            past = [[transaction.now, json.loads(text)], *earlier][:KEPT_RUNS]
            transaction.run(
                NOTE_RUN, {**row, "service": _past(service), "report": json.dumps(past)}
            )

    database.write(work)


def last_run(database: Database, service: str) -> LastRun | None:
    """The last report of a service, if it ever ran."""
    rows = database.read_rows(LAST_RUN, {"of_service": service})
    return LastRun(int(rows[0][0]), json.loads(rows[0][1])) if rows else None


def past_runs(database: Database, service: str) -> list[LastRun]:
    """The last ten reports of a service, newest first; runs without a report are not kept."""
    rows = database.read_rows(LAST_RUN, {"of_service": _past(service)})
    return [LastRun(int(at), report) for at, report in json.loads(rows[0][1])] if rows else []


def _past(service: str) -> str:
    return f"past {service}"
