"""A job of trees as the ledger has it, and what says that it is still ours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, Row, insert

from calque.errors import ConditionNotMatch
from calque.ledger.lease import process_is_gone
from calque.ledger.schema import job_ranges, jobs

State = Literal["RUNNING", "STOPPED", "DONE", "PARTLY"]
"""STOPPED can be resumed; DONE and PARTLY (some objects failed) are over."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the ledger has it."""

    job_id: str
    kind: str
    source: str
    target: str
    pair: str
    """Which two trees: the same for every spelling of them."""
    request: Mapping[str, Any]
    state: State = "RUNNING"
    phase: str = "copy"
    owner: str = ""
    lease_until: int = 0
    started_at: int = 0
    updated_at: int = 0
    finished_at: int | None = None
    totals: Mapping[str, Any] = field(default_factory=dict)
    report: str | None = None
    report_size: int | None = None
    message: str | None = None

    def is_alive(self, now: int) -> bool:
        """Whether somebody is at it, as far as can be known."""
        return self.state == "RUNNING" and self.lease_until > now and not self.is_orphaned

    @property
    def is_orphaned(self) -> bool:
        return self.state == "RUNNING" and process_is_gone(self.owner)

    @property
    def is_over(self) -> bool:
        return self.state in ("DONE", "PARTLY")


@dataclass(frozen=True, slots=True)
class Span:
    """Keys that are left to be acted on: behind ``after``, up to ``up_to``; None is no end."""

    after: bytes = b""
    up_to: bytes | None = None
    tree: int = 0
    """Of which of the job's sources, counted from 0."""


def is_ours(job: Job) -> tuple[Any, ...]:
    """The condition that its owner still holds it."""
    return (
        jobs.c.job_id == job.job_id,
        jobs.c.owner == job.owner,
        jobs.c.state == "RUNNING",
    )


def check_held(changed: Any, job: Job) -> None:
    """Raise where a write under :func:`is_ours` has met no row."""
    if changed.rowcount != 1:
        raise ConditionNotMatch(
            f"job {job.job_id} was stopped, or taken over by another process",
            hint="`calque jobs show` says which. What was done stays, the rest can be resumed.",
        )


def write_spans(connection: Connection, job_id: str, spans: Iterable[Span]) -> None:
    """What is left of a job; the older rows must be gone."""
    rows = [
        {"job_id": job_id, "tree": each.tree, "after": each.after, "up_to": each.up_to}
        for each in spans
    ]
    if rows:
        connection.execute(insert(job_ranges), rows)


def columns_of(job: Job) -> dict[str, Any]:
    """A job as a row. What is only shown is text; the request keeps every name as it is."""
    told: dict[str, Any] = {name: getattr(job, name) for name in Job.__slots__}
    shown = {name: as_text(told[name]) for name in ("source", "target", "report", "message")}
    jsons = {"request": json.dumps(job.request), "totals": json.dumps(dict(job.totals))}
    return {**told, **shown, **jsons}


def as_text(name: str | None) -> str | None:
    """Names of files may be any bytes, which no database takes as text: they are escaped."""
    return None if name is None else name.encode("utf-8", "backslashreplace").decode()


def job_of(row: Row[Any]) -> Job:
    """A row as a job."""
    told = {name: getattr(row, name) for name in Job.__slots__}
    request = json.loads(row.request)
    exact = {"request": request, "report": request.get("report") or row.report}
    return Job(**{**told, **exact, "totals": json.loads(row.totals)})
