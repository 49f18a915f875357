"""Expiry: drop records whose life is over, and the traces of loads older than that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, delete, func, select, update

from calque.ledger.adopt import ADOPTED
from calque.ledger.database import Ledger
from calque.ledger.files import NAMES_AT_ONCE, RECORDS_AT_ONCE
from calque.ledger.schema import OPEN, errors, files, loads, purges, results, tables
from calque.ledger.tables import KEY_COLUMNS, TableKey, TableRow, lock_table


@dataclass(frozen=True, slots=True)
class Expired:
    """How much was dropped."""

    files: int
    loads: int


@dataclass(frozen=True, slots=True)
class OldLoad:
    """A load that ended a whole life ago and has no record left, and its table."""

    load_id: str
    tenant: str
    key: TableKey
    forgotten_until: int | None
    """How young the files were whose records of this table are dropped by now."""
    adopted: bool
    """It was run with another ledger, to which what it left beside the table belongs."""


def expire(ledger: Ledger, release: Callable[[OldLoad], bool] = lambda load: True) -> Expired:
    """Drop expired records, and loads that ended a whole life ago with no record left.

    ``release`` lets go of what a load left elsewhere. It comes first, so that nothing is left that
    no ledger knows of; a load for which it says False stays until the next time.
    """
    with ledger.read() as connection:
        numbers = connection.execute(select(tables.c.number)).scalars().all()
    dropped = 0
    for number in numbers:
        page = _Page(end="")
        while page.end is not None:
            page = _drop_records(ledger, number, page.end)
            dropped += page.dropped.total()
    return Expired(dropped, _drop_loads(ledger, release, _old_loads()))


def expire_some(ledger: Ledger, table: TableRow, release: Callable[[OldLoad], bool]) -> Expired:
    """The same for one page of a table's records, each time the next, and for their loads.

    Loads that came to nothing go as well, of whatever table: no record leads to them. Those of
    other tenants stay, who may have another life.
    """
    this = tables.c.number == table.number
    with ledger.read() as connection:
        begin = connection.execute(select(tables.c.swept_to).where(this)).scalar() or ""
    page = _drop_records(ledger, table.number, begin)
    if (page.end or "") != begin:
        with ledger.write() as connection:
            connection.execute(update(tables).where(this).values(swept_to=page.end))
    old = _drop_aborted(ledger)
    names = sorted(page.dropped)[:NAMES_AT_ONCE]
    if names:
        old += _drop_loads(ledger, release, _old_loads().where(loads.c.load_id.in_(names)))
    return Expired(page.dropped.total(), old)


@dataclass(frozen=True, slots=True)
class _Page:
    """Where a page of records ended (None: it was the last), and how many of each load went."""

    end: str | None
    dropped: Counter[str] = field(default_factory=Counter)


def _drop_records(ledger: Ledger, number: int, begin: str) -> _Page:
    """Drop what is over of the next records, and remember how young their files were.

    A file was loaded after it was written. So a record whose file is younger than records live is
    not over, even if the clock of the one that wrote it was far behind.
    """
    with ledger.read() as connection:
        horizon = ledger.lease_now(connection)
        query = (
            select(files.c.location, files.c.last_modified, files.c.expires_at)
            .where(files.c.table_number == number, files.c.location > begin)
            .order_by(files.c.location)
            .limit(RECORDS_AT_ONCE)
        )
        page = connection.execute(query).all()
    written = horizon - ledger.life
    over = [
        (location, modified or 0)
        for location, modified, expires in page
        if expires <= horizon and (modified or 0) <= written
    ]
    end = page[-1].location if len(page) == RECORDS_AT_ONCE else None
    dropped: Counter[str] = Counter()
    for start in range(0, len(over), NAMES_AT_ONCE):
        dropped += _drop_some(ledger, number, horizon, over[start : start + NAMES_AT_ONCE])
    return _Page(end, dropped)


def _drop_some(
    ledger: Ledger, number: int, horizon: int, over: Sequence[tuple[str, int]]
) -> Counter[str]:
    with ledger.write() as connection:
        lock_table(connection, number)
        gone = connection.execute(
            delete(files)
            .where(
                files.c.table_number == number,
                files.c.location.in_([location for location, _ in over]),
                files.c.expires_at <= horizon,  # somebody may have renewed it just now
            )
            .returning(files.c.load_id)
        )
        dropped = Counter(gone.scalars())
        _note_forgotten(connection, number, max(modified for _, modified in over))
    return dropped


def note_forgotten(ledger: Ledger, table: TableRow, youngest: int) -> None:
    """Take in that records of files up to this time stamp were dropped, with another ledger."""
    with ledger.write() as connection:
        _note_forgotten(connection, table.number, youngest)


def _note_forgotten(connection: Connection, number: int, youngest: int) -> None:
    connection.execute(
        update(tables)
        .where(
            tables.c.number == number,
            func.coalesce(tables.c.forgotten_until, -1) < youngest,
        )
        .values(forgotten_until=youngest)
    )


def _drop_aborted(ledger: Ledger) -> int:
    """Some loads that were aborted a whole life ago.

    Nothing of them lies beside a table but the id of a label, which then nobody else gets.
    """
    horizon = ledger.shared_now() - ledger.life
    query = (
        select(loads.c.load_id)
        .where(loads.c.state == "ABORTED", loads.c.lease_until <= horizon)
        .where(loads.c.finished_at <= horizon)
        .join(tables, tables.c.number == loads.c.table_number)
        .where(tables.c.tenant == ledger.tenant)
        .order_by(loads.c.lease_until)
        .limit(NAMES_AT_ONCE)
    )
    with ledger.read() as connection:
        names = connection.execute(query).scalars().all()
    if names:
        _drop(ledger, names)
    return len(names)


def _drop_loads(
    ledger: Ledger, release: Callable[[OldLoad], bool], query: Select[tuple[Any, ...]]
) -> int:
    over = loads.c.finished_at <= ledger.shared_now() - ledger.life
    with ledger.read() as connection:
        found = [
            OldLoad(load_id, tenant, TableKey(*key), until, owner == ADOPTED)
            for load_id, owner, tenant, until, *key in connection.execute(query.where(over))
        ]
    old = [load.load_id for load in found if release(load)]
    for start in range(0, len(old), NAMES_AT_ONCE):
        _drop(ledger, old[start : start + NAMES_AT_ONCE])
    return len(old)


def _old_loads() -> Select[tuple[Any, ...]]:
    """Loads of which nothing is left but that they were."""
    return (
        select(
            loads.c.load_id,
            loads.c.owner,
            tables.c.tenant,
            tables.c.forgotten_until,
            *KEY_COLUMNS,
        )
        .join(tables, tables.c.number == loads.c.table_number)
        .where(loads.c.state.not_in(OPEN))
        .where(~select(files.c.load_id).where(files.c.load_id == loads.c.load_id).exists())
        .where(~select(purges.c.load_id).where(purges.c.load_id == loads.c.load_id).exists())
    )


def _drop(ledger: Ledger, names: Sequence[str]) -> None:
    with ledger.write() as connection:
        for table in (errors, results, loads):
            connection.execute(delete(table).where(table.c.load_id.in_(names)))
