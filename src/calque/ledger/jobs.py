"""Jobs: runs over trees, what is left of them, and who is at them.

A **job** is one request and its progress: **ranges** of keys that were not acted on yet,
checkpoints of large **copies** under way, **failures**. Never its objects: a job of millions that
goes well has as many rows as workers.

Invariants:

- two trees have at most one job that is RUNNING (``held_pair`` is unique);
- only the owner of a RUNNING job writes to it: every write names the owner, and one that lost its
  job to another is told so;
- what lies in no range of a job was acted on, and its rows are in the report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, insert, select, update

from calque.errors import AlreadyExists, ConditionNotMatch, NotFound
from calque.ledger.database import Ledger
from calque.ledger.identity import DAY
from calque.ledger.lease import process_is_gone
from calque.ledger.schema import job_copies, job_failures, job_ranges, jobs

State = Literal["RUNNING", "STOPPED", "DONE", "PARTLY"]
"""STOPPED can be resumed; DONE and PARTLY (some objects failed) are over."""

LEASE_SECONDS = 60.0
LIFE = 30 * DAY
"""How long a job is kept after it was last worked on."""


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


@dataclass(frozen=True, slots=True)
class Failure:
    """An object of a job that could not be made right."""

    path: bytes
    error: str
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a job is: all of it is noted together, or nothing of it."""

    spans: Iterable[Span]
    totals: Mapping[str, Any]
    phase: str = "copy"
    report_size: int | None = None
    failures: Iterable[Failure] = ()
    """Those since the last note."""


def begin_job(ledger: Ledger, job: Job, spans: Iterable[Span], seconds: float) -> Job:
    """Note a new job, held by its owner. ConditionNotMatch names one that holds the same trees."""
    try:
        with ledger.write() as connection:
            now = ledger.lease_now(connection)
            _refuse_held(connection, ledger, job.pair, now)
            begun = {
                **_columns(job),
                "tenant": ledger.tenant,
                "held_pair": _held(ledger, job.pair),
                "lease_until": now + int(seconds * 1e6),
                "started_at": now,
                "updated_at": now,
            }
            connection.execute(insert(jobs).values(begun))
            _write_spans(connection, job.job_id, spans)
    except AlreadyExists as error:  # two began at once, and the other was quicker
        raise _busy("another job") from error
    return find_job(ledger, job.job_id)


def _refuse_held(connection: Connection, ledger: Ledger, pair: str, now: int) -> None:
    row = connection.execute(select(jobs).where(jobs.c.held_pair == _held(ledger, pair))).first()
    if row is None:
        return
    holder = _job_of(row)
    if holder.is_alive(now):
        raise _busy(f"job {holder.job_id}")
    _stop(connection, holder.job_id, "its process died")


def _busy(holder: str) -> ConditionNotMatch:
    return ConditionNotMatch(
        f"{holder} is at work on these two trees",
        hint="Wait for it, or stop it first: `calque jobs ls` shows who is at work.",
    )


def take_job(ledger: Ledger, job_id: str, owner: str, seconds: float) -> Job:
    """Take over a job that nobody is at, to go on with it. Of two at once one wins."""
    try:
        with ledger.write() as connection:
            query = select(jobs).where(jobs.c.job_id == job_id, jobs.c.tenant == ledger.tenant)
            row = connection.execute(query.with_for_update()).first()
            if row is None:
                raise _missing(job_id)
            job, now = _job_of(row), ledger.lease_now(connection)
            if job.is_over:
                raise ConditionNotMatch(
                    f"job {job_id} is over: there is nothing left to resume",
                    hint="What failed can be tried again by --from-report, or by a new run.",
                )
            if job.is_alive(now):
                raise _busy(f"job {job_id}")
            if job.state == "STOPPED":
                _refuse_held(connection, ledger, job.pair, now)
            connection.execute(
                update(jobs)
                .where(jobs.c.job_id == job_id)
                .values(
                    state="RUNNING",
                    owner=owner,
                    held_pair=_held(ledger, job.pair),
                    lease_until=now + int(seconds * 1e6),
                    message=None,
                )
            )
    except AlreadyExists as error:
        raise _busy("another job") from error
    return find_job(ledger, job_id)


def renew_job(ledger: Ledger, job: Job, seconds: float) -> bool:
    """Hold the job for longer; False when it is somebody else's by now."""
    with ledger.write() as connection:
        until = ledger.lease_now(connection) + int(seconds * 1e6)
        renewed = connection.execute(update(jobs).where(*_ours(job)).values(lease_until=until))
    return renewed.rowcount == 1


def note_progress(ledger: Ledger, job: Job, progress: Progress) -> None:
    """Note how far a job is; ConditionNotMatch when another has taken it over."""
    with ledger.write() as connection:
        now = ledger.lease_now(connection)
        values: dict[str, Any] = {
            "totals": json.dumps(dict(progress.totals)),
            "phase": progress.phase,
            "updated_at": now,
            "lease_until": now + int(LEASE_SECONDS * 1e6),
        }
        if progress.report_size is not None:
            values["report_size"] = progress.report_size
        _check_held(connection.execute(update(jobs).where(*_ours(job)).values(values)), job)
        connection.execute(delete(job_ranges).where(job_ranges.c.job_id == job.job_id))
        _write_spans(connection, job.job_id, progress.spans)
        _write_failures(connection, job.job_id, progress.failures)


def end_job(ledger: Ledger, job: Job, state: State, message: str | None = None) -> None:
    """Let go of a job: over, or stopped so that it can be resumed."""
    over = state in ("DONE", "PARTLY")
    with ledger.write() as connection:
        now = ledger.lease_now(connection)
        ended = connection.execute(
            update(jobs)
            .where(*_ours(job))
            .values(
                state=state,
                held_pair=None,
                updated_at=now,
                finished_at=now if over else None,
                message=message,
            )
        )
        _check_held(ended, job)
        if over:
            for table in (job_ranges, job_copies):
                connection.execute(delete(table).where(table.c.job_id == job.job_id))


def keep_copy(ledger: Ledger, job: Job, path: bytes, checkpoint: str) -> None:
    """Keep the checkpoint of a large copy, in place of an older one."""
    with ledger.write() as connection:
        now = ledger.lease_now(connection)
        _check_held(connection.execute(update(jobs).where(*_ours(job)).values(updated_at=now)), job)
        _forget_copy(connection, job.job_id, path)
        values = {"job_id": job.job_id, "path": path, "checkpoint": checkpoint}
        connection.execute(insert(job_copies).values(values))


def forget_copy(ledger: Ledger, job: Job, path: bytes) -> None:
    """Drop the checkpoint of a copy that is over."""
    with ledger.write() as connection:
        _forget_copy(connection, job.job_id, path)


def _forget_copy(connection: Connection, job_id: str, path: bytes) -> None:
    connection.execute(
        delete(job_copies).where(job_copies.c.job_id == job_id, job_copies.c.path == path)
    )


def find_job(ledger: Ledger, job_id: str) -> Job:
    """A job by its id, or by the beginning of it that no other has."""
    query = select(jobs).where(
        jobs.c.tenant == ledger.tenant, jobs.c.job_id.startswith(job_id, autoescape=True)
    )
    with ledger.read() as connection:
        found = [_job_of(row) for row in connection.execute(query.limit(2))]
    exact = [job for job in found if job.job_id == job_id]
    if not job_id or len(exact or found) != 1:
        raise _missing(job_id, several=len(found) > 1)
    return (exact or found)[0]


def _missing(job_id: str, *, several: bool = False) -> NotFound:
    what = "several jobs begin with" if several else "there is no job"
    return NotFound(f"{what} {job_id!r}", hint="`calque jobs ls` shows all.")


def list_jobs(ledger: Ledger) -> list[Job]:
    """All jobs of the tenant, the youngest first."""
    query = select(jobs).where(jobs.c.tenant == ledger.tenant).order_by(jobs.c.started_at.desc())
    with ledger.read() as connection:
        return [_job_of(row) for row in connection.execute(query)]


def find_unfinished(ledger: Ledger, pair: str) -> Job | None:
    """The youngest job of two trees that is not over, at work or not."""
    query = (
        select(jobs)
        .where(
            jobs.c.tenant == ledger.tenant,
            jobs.c.pair == pair,
            jobs.c.state.in_(("RUNNING", "STOPPED")),
        )
        .order_by(jobs.c.started_at.desc())
        .limit(1)
    )
    with ledger.read() as connection:
        row = connection.execute(query).first()
    return None if row is None else _job_of(row)


def spans_of(ledger: Ledger, job_id: str) -> list[Span]:
    """What is left of a job, in order."""
    query = (
        select(job_ranges.c.after, job_ranges.c.up_to)
        .where(job_ranges.c.job_id == job_id)
        .order_by(job_ranges.c.after)
    )
    with ledger.read() as connection:
        return [Span(bytes(after), _bytes(up_to)) for after, up_to in connection.execute(query)]


def copies_of(ledger: Ledger, job_id: str) -> dict[bytes, str]:
    """Checkpoints of large copies that were under way, by path."""
    query = select(job_copies.c.path, job_copies.c.checkpoint).where(job_copies.c.job_id == job_id)
    with ledger.read() as connection:
        return {bytes(path): checkpoint for path, checkpoint in connection.execute(query)}


def failures_of(ledger: Ledger, job_id: str) -> list[Failure]:
    """What failed in a job, by path."""
    query = (
        select(job_failures.c.path, job_failures.c.error, job_failures.c.message)
        .where(job_failures.c.job_id == job_id)
        .order_by(job_failures.c.path)
    )
    with ledger.read() as connection:
        return [Failure(bytes(path), *rest) for path, *rest in connection.execute(query)]


def remove_job(ledger: Ledger, job_id: str) -> Job:
    """Forget a job that nobody is at; what it copied stays. ConditionNotMatch while one is."""
    job = find_job(ledger, job_id)
    with ledger.write() as connection:
        now = ledger.lease_now(connection)
        query = select(jobs).where(jobs.c.job_id == job.job_id).with_for_update()
        row = connection.execute(query).first()
        if row is not None and _job_of(row).is_alive(now):
            raise _busy(f"job {job.job_id}")
        _remove(connection, [job.job_id])
    return job


def expire_jobs(ledger: Ledger) -> int:
    """Forget jobs that nobody has worked on for thirty days; how many."""
    with ledger.write() as connection:
        now = ledger.lease_now(connection)
        old = select(jobs).where(jobs.c.tenant == ledger.tenant, jobs.c.updated_at < now - LIFE)
        expired = [
            job.job_id for job in map(_job_of, connection.execute(old)) if not job.is_alive(now)
        ]
        _remove(connection, expired)
    return len(expired)


def _remove(connection: Connection, ids: list[str]) -> None:
    for table in (job_ranges, job_copies, job_failures, jobs):
        connection.execute(delete(table).where(table.c.job_id.in_(ids)))


def _stop(connection: Connection, job_id: str, message: str) -> None:
    values = {"state": "STOPPED", "held_pair": None, "message": message}
    connection.execute(update(jobs).where(jobs.c.job_id == job_id).values(values))


def _held(ledger: Ledger, pair: str) -> str:
    return f"{ledger.tenant}\n{pair}"


def _ours(job: Job) -> tuple[Any, ...]:
    return (
        jobs.c.job_id == job.job_id,
        jobs.c.owner == job.owner,
        jobs.c.state == "RUNNING",
    )


def _check_held(changed: Any, job: Job) -> None:
    if changed.rowcount != 1:
        raise ConditionNotMatch(
            f"job {job.job_id} was taken over by another process",
            hint="This one was silent for too long. `calque jobs show` says who is at it.",
        )


def _write_spans(connection: Connection, job_id: str, spans: Iterable[Span]) -> None:
    rows = [{"job_id": job_id, "after": each.after, "up_to": each.up_to} for each in spans]
    if rows:
        connection.execute(insert(job_ranges), rows)


def _write_failures(connection: Connection, job_id: str, failures: Iterable[Failure]) -> None:
    for each in failures:
        same = (job_failures.c.job_id == job_id, job_failures.c.path == each.path)
        connection.execute(delete(job_failures).where(*same))
        values = {"job_id": job_id, "path": each.path, "error": each.error}
        connection.execute(insert(job_failures).values({**values, "message": each.message}))


def _columns(job: Job) -> dict[str, Any]:
    told: dict[str, Any] = {name: getattr(job, name) for name in Job.__slots__}
    return {**told, "request": json.dumps(job.request), "totals": json.dumps(dict(job.totals))}


def _job_of(row: Row[Any]) -> Job:
    told = {name: getattr(row, name) for name in Job.__slots__}
    return Job(**{**told, "request": json.loads(row.request), "totals": json.loads(row.totals)})


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
