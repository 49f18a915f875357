"""Jobs: runs over trees, what is left of them, and who is at them.

A **job** is one request and its progress: **ranges** of keys that were not acted on yet,
checkpoints of large **copies** under way, **acts** that are about to make objects vanish, many
together, **failures**. Never its objects: a job of millions that goes well has as many rows as
workers.

Invariants:

- two trees have at most one job that is RUNNING (``held_pair`` is unique);
- only the owner of a RUNNING job writes to it: every write names the owner, and one that lost its
  job to another is told so;
- what lies in no range of a job was acted on, and its rows are in the report;
- what was deleted or moved and has no row is among the acts of its job.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, insert, select, update

from calque.errors import AlreadyExists, ConditionNotMatch, NotFound
from calque.ledger.database import Ledger
from calque.ledger.identity import DAY
from calque.ledger.job_record import (
    Job,
    Span,
    State,
    as_text,
    check_held,
    columns_of,
    is_ours,
    job_of,
    write_spans,
)
from calque.ledger.schema import job_acts, job_copies, job_failures, job_ranges, jobs

LIFE = 30 * DAY
"""How long a job is kept after it was last worked on."""


def begin_job(ledger: Ledger, job: Job, spans: Iterable[Span], seconds: float) -> Job:
    """Note a new job, held by its owner. ConditionNotMatch names one that holds the same trees."""
    try:
        with ledger.write() as connection:
            now = ledger.lease_now(connection)
            _refuse_held(connection, ledger, job.pair, now)
            begun = {
                **columns_of(job),
                "tenant": ledger.tenant,
                "held_pair": _name_of_pair(ledger, job.pair),
                "lease_until": now + int(seconds * 1e6),
                "started_at": now,
                "updated_at": now,
            }
            connection.execute(insert(jobs).values(begun))
            write_spans(connection, job.job_id, spans)
    except AlreadyExists as error:  # two began at once, and the other was quicker
        raise _busy_error("another job") from error
    return find_job(ledger, job.job_id)


def _refuse_held(connection: Connection, ledger: Ledger, pair: str, now: int) -> None:
    row = connection.execute(
        select(jobs).where(jobs.c.held_pair == _name_of_pair(ledger, pair))
    ).first()
    if row is None:
        return
    holder = job_of(row)
    if holder.is_alive(now):
        raise _busy_error(f"job {holder.job_id}")
    _stop(connection, holder.job_id, "its process died")


def _busy_error(holder: str) -> ConditionNotMatch:
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
            job, now = job_of(row), ledger.lease_now(connection)
            if job.is_over:
                raise ConditionNotMatch(
                    f"job {job_id} is over: there is nothing left to resume",
                    hint="What failed can be tried again by --from-report, or by a new run.",
                )
            if job.is_alive(now):
                raise _busy_error(f"job {job_id}")
            if job.state == "STOPPED":
                _refuse_held(connection, ledger, job.pair, now)
            connection.execute(
                update(jobs)
                .where(jobs.c.job_id == job_id)
                .values(
                    state="RUNNING",
                    owner=owner,
                    held_pair=_name_of_pair(ledger, job.pair),
                    lease_until=now + int(seconds * 1e6),
                    message=None,
                )
            )
    except AlreadyExists as error:
        raise _busy_error("another job") from error
    return find_job(ledger, job_id)


def renew_job(ledger: Ledger, job: Job, seconds: float) -> bool:
    """Hold the job for longer; False when it is somebody else's by now."""
    with ledger.write() as connection:
        until = ledger.lease_now(connection) + int(seconds * 1e6)
        renewed = connection.execute(update(jobs).where(*is_ours(job)).values(lease_until=until))
    return renewed.rowcount == 1


def end_job(ledger: Ledger, job: Job, state: State, message: str | None = None) -> None:
    """Let go of a job: over, or stopped so that it can be resumed."""
    over = state in ("DONE", "PARTLY")
    with ledger.write() as connection:
        now = ledger.lease_now(connection)
        ended = connection.execute(
            update(jobs)
            .where(*is_ours(job))
            .values(
                state=state,
                held_pair=None,
                updated_at=now,
                finished_at=now if over else None,
                message=as_text(message),
            )
        )
        check_held(ended, job)
        if over:
            for table in (job_ranges, job_copies, job_acts):
                connection.execute(delete(table).where(table.c.job_id == job.job_id))


def find_job(ledger: Ledger, job_id: str) -> Job:
    """A job by its id, or by the beginning of it that no other has."""
    query = select(jobs).where(
        jobs.c.tenant == ledger.tenant, jobs.c.job_id.startswith(job_id, autoescape=True)
    )
    with ledger.read() as connection:
        found = [job_of(row) for row in connection.execute(query.limit(2))]
    exact = [job for job in found if job.job_id == job_id]
    if not job_id or len(exact or found) != 1:
        raise _missing(job_id, several=len(found) > 1)
    return (exact or found)[0]


def _missing(job_id: str, *, several: bool = False) -> NotFound:
    what = "several jobs begin with" if several else "there is no job"
    return NotFound(f"{what} {job_id!r}", hint="`calque jobs ls` shows all.")


def list_jobs(ledger: Ledger, *, limit: int | None = None) -> list[Job]:
    """All jobs of the tenant, or so many, the youngest first."""
    query = select(jobs).where(jobs.c.tenant == ledger.tenant).order_by(jobs.c.started_at.desc())
    with ledger.read() as connection:
        return [job_of(row) for row in connection.execute(query.limit(limit))]


def jobs_at_work(ledger: Ledger, since: int) -> list[Job]:
    """Jobs that run, and those that were worked on since a moment, the youngest first."""
    query = (
        select(jobs)
        .where(
            jobs.c.tenant == ledger.tenant,
            (jobs.c.state == "RUNNING") | (jobs.c.updated_at >= since),
        )
        .order_by(jobs.c.started_at.desc())
    )
    with ledger.read() as connection:
        return [job_of(row) for row in connection.execute(query)]


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
    return None if row is None else job_of(row)


def stop_job(ledger: Ledger, job_id: str, who: str) -> Job:
    """Take a running job away from whoever is at it: that process notices with its next note, about
    a second later, and ends. What it did is done, the rest can be resumed.

    ConditionNotMatch where the job does not run.
    """
    job = find_job(ledger, job_id)
    with ledger.write() as connection:
        stopped = connection.execute(
            update(jobs)
            .where(jobs.c.job_id == job.job_id, jobs.c.state == "RUNNING")
            .values(
                state="STOPPED",
                held_pair=None,
                updated_at=ledger.lease_now(connection),
                message=f"stopped by {who}",
            )
        )
    if stopped.rowcount != 1:
        raise ConditionNotMatch(f"job {job.job_id} does not run", hint="There is nothing to stop.")
    return find_job(ledger, job.job_id)


def remove_job(ledger: Ledger, job_id: str) -> Job:
    """Forget a job that nobody is at; what it copied stays. ConditionNotMatch while one is."""
    job = find_job(ledger, job_id)
    with ledger.write() as connection:
        now = ledger.lease_now(connection)
        query = select(jobs).where(jobs.c.job_id == job.job_id).with_for_update()
        row = connection.execute(query).first()
        if row is not None and job_of(row).is_alive(now):
            raise _busy_error(f"job {job.job_id}")
        _remove(connection, [job.job_id])
    return job


def expire_jobs(ledger: Ledger) -> int:
    """Forget jobs that nobody has worked on for thirty days; how many."""
    with ledger.write() as connection:
        now = ledger.lease_now(connection)
        old = select(jobs).where(jobs.c.tenant == ledger.tenant, jobs.c.updated_at < now - LIFE)
        expired = [
            job.job_id for job in map(job_of, connection.execute(old)) if not job.is_alive(now)
        ]
        _remove(connection, expired)
    return len(expired)


def _remove(connection: Connection, ids: list[str]) -> None:
    for table in (job_ranges, job_copies, job_acts, job_failures, jobs):
        connection.execute(delete(table).where(table.c.job_id.in_(ids)))


def _stop(connection: Connection, job_id: str, message: str) -> None:
    values = {"state": "STOPPED", "held_pair": None, "message": message}
    connection.execute(update(jobs).where(jobs.c.job_id == job_id).values(values))


def _name_of_pair(ledger: Ledger, pair: str) -> str:
    return f"{ledger.tenant}\n{pair}"
