"""How far a job of trees is: ranges that are left, large copies and acts under way, failures."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from calque.ledger.database import Ledger
from calque.ledger.job_record import Job, Span, as_text, check_held, is_ours, write_spans
from calque.ledger.schema import job_acts, job_copies, job_failures, job_ranges, jobs

LEASE_SECONDS = 60.0


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
    ended_acts: Collection[int] = ()
    """The numbers of acts that count among the totals from now on."""
    ended_copies: Collection[tuple[int, bytes]] = ()
    """Large copies that do so, by tree and path."""


@dataclass(frozen=True, slots=True)
class Acts:
    """Objects of one tree that are about to be deleted or moved, as whoever notes them packs them.

    Once they are gone no listing tells of them.
    """

    number: int
    tree: int
    packed: bytes


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
        check_held(connection.execute(update(jobs).where(*is_ours(job)).values(values)), job)
        connection.execute(delete(job_ranges).where(job_ranges.c.job_id == job.job_id))
        write_spans(connection, job.job_id, progress.spans)
        _write_failures(connection, job.job_id, progress.failures)
        if progress.ended_acts:
            ended = job_acts.c.number.in_(progress.ended_acts)
            connection.execute(delete(job_acts).where(job_acts.c.job_id == job.job_id, ended))
        for tree, path in progress.ended_copies:
            _forget_copy(connection, job.job_id, tree, path)


def announce_acts(ledger: Ledger, job: Job, acts: Acts) -> None:
    """Keep acts before the first of them; ConditionNotMatch when another has the job by now."""
    with ledger.write() as connection:
        now = ledger.lease_now(connection)
        check_held(
            connection.execute(update(jobs).where(*is_ours(job)).values(updated_at=now)), job
        )
        values = {"number": acts.number, "tree": acts.tree, "packed": acts.packed}
        connection.execute(insert(job_acts).values({"job_id": job.job_id, **values}))


def acts_of(ledger: Ledger, job_id: str) -> list[Acts]:
    """Acts that were announced and are not among the totals, in order."""
    columns = (job_acts.c.number, job_acts.c.tree, job_acts.c.packed)
    query = select(*columns).where(job_acts.c.job_id == job_id).order_by(job_acts.c.number)
    with ledger.read() as connection:
        return [
            Acts(number, tree, bytes(packed)) for number, tree, packed in connection.execute(query)
        ]


def keep_copy(ledger: Ledger, job: Job, tree: int, path: bytes, checkpoint: str) -> None:
    """Keep the checkpoint of a large copy under way, in place of an older one; at first it has
    none."""
    with ledger.write() as connection:
        now = ledger.lease_now(connection)
        check_held(
            connection.execute(update(jobs).where(*is_ours(job)).values(updated_at=now)), job
        )
        _forget_copy(connection, job.job_id, tree, path)
        values = {"job_id": job.job_id, "tree": tree, "path": path, "checkpoint": checkpoint}
        connection.execute(insert(job_copies).values(values))


def _forget_copy(connection: Connection, job_id: str, tree: int, path: bytes) -> None:
    same = (job_copies.c.job_id == job_id, job_copies.c.tree == tree, job_copies.c.path == path)
    connection.execute(delete(job_copies).where(*same))


def spans_of(ledger: Ledger, job_id: str) -> list[Span]:
    """What is left of a job, in order."""
    query = (
        select(job_ranges.c.after, job_ranges.c.up_to, job_ranges.c.tree)
        .where(job_ranges.c.job_id == job_id)
        .order_by(job_ranges.c.tree, job_ranges.c.after)
    )
    with ledger.read() as connection:
        return [
            Span(bytes(after), None if up_to is None else bytes(up_to), tree)
            for after, up_to, tree in connection.execute(query)
        ]


def copies_of(ledger: Ledger, job_id: str) -> dict[tuple[int, bytes], str]:
    """Checkpoints of large copies that were under way, by tree and path."""
    columns = (job_copies.c.tree, job_copies.c.path, job_copies.c.checkpoint)
    query = select(*columns).where(job_copies.c.job_id == job_id)
    with ledger.read() as connection:
        rows = connection.execute(query)
        return {(tree, bytes(path)): checkpoint for tree, path, checkpoint in rows}


def failures_of(ledger: Ledger, job_id: str) -> list[Failure]:
    """What failed in a job, by path."""
    query = (
        select(job_failures.c.path, job_failures.c.error, job_failures.c.message)
        .where(job_failures.c.job_id == job_id)
        .order_by(job_failures.c.path)
    )
    with ledger.read() as connection:
        return [Failure(bytes(path), *rest) for path, *rest in connection.execute(query)]


def _write_failures(connection: Connection, job_id: str, failures: Iterable[Failure]) -> None:
    for each in failures:
        same = (job_failures.c.job_id == job_id, job_failures.c.path == each.path)
        connection.execute(delete(job_failures).where(*same))
        values = {"job_id": job_id, "path": each.path, "error": each.error}
        connection.execute(
            insert(job_failures).values({**values, "message": as_text(each.message)})
        )
