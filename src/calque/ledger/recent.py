"""What happened lately, over all tables: for one who looks at the whole and not at one table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from sqlalchemy import func, select

from calque.ledger.database import Ledger
from calque.ledger.history import LoadRow, select_loads
from calque.ledger.identity import DAY
from calque.ledger.lease import process_is_gone
from calque.ledger.schema import OPEN, claims, loads, tables


class DayOfLoads(NamedTuple):
    """The sums of the loads that began on one day (UTC)."""

    day: date
    loads: int = 0
    rows: int = 0
    errors: int = 0


class LoadsAtWork(NamedTuple):
    """The ids of loads that are not over."""

    alive: frozenset[str]
    dead: frozenset[str]


def recent_loads(
    ledger: Ledger,
    *,
    table: int | None = None,
    states: Sequence[str] = (),
    with_trouble: bool = False,
    since: int = 0,
    limit: int = 50,
) -> list[LoadRow]:
    """The last loads of the tenant, newest first: of one table, in some states, or those since a
    moment that were given up or rejected rows."""
    conditions = [tables.c.tenant == ledger.tenant, loads.c.started_at >= since]
    if table is not None:
        conditions.append(loads.c.table_number == table)
    if states:
        conditions.append(loads.c.state.in_(states))
    if with_trouble:
        conditions.append((loads.c.errors > 0) | (loads.c.state == "ABORTED"))
    return select_loads(ledger, conditions, limit)


def open_loads(ledger: Ledger, *, limit: int = 50) -> list[LoadRow]:
    """Loads that are not over, newest first."""
    return recent_loads(ledger, states=OPEN, limit=limit)


def loads_by_day(ledger: Ledger, days: int, *, table: int | None = None) -> list[DayOfLoads]:
    """The last days up to today, oldest first; none is left out."""
    today = ledger.now() // DAY
    day = loads.c.started_at // DAY
    query = (
        select(
            day.label("day"),
            func.count(),
            func.coalesce(func.sum(loads.c.rows), 0),
            func.coalesce(func.sum(loads.c.errors), 0),
        )
        .join(tables, tables.c.number == loads.c.table_number)
        .where(tables.c.tenant == ledger.tenant, loads.c.started_at >= (today - days + 1) * DAY)
        .group_by("day")
    )
    if table is not None:
        query = query.where(loads.c.table_number == table)
    with ledger.read() as connection:
        found = {int(row[0]): row[1:] for row in connection.execute(query)}
    return [
        DayOfLoads(_date(each), *map(int, found.get(each, ())))
        for each in range(today - days + 1, today + 1)
    ]


def alive_or_dead(ledger: Ledger) -> LoadsAtWork:
    """The loads that are not over: those that run, and those whose process is gone or whose lease
    ran out, which the next load of their table settles."""
    query = (
        select(loads.c.load_id, loads.c.owner, loads.c.lease_until)
        .join(tables, tables.c.number == loads.c.table_number)
        .where(tables.c.tenant == ledger.tenant, loads.c.state.in_(OPEN))
    )
    with ledger.read() as connection:
        now = ledger.lease_now(connection)
        found = connection.execute(query).all()
    dead = {row.load_id for row in found if row.lease_until <= now or process_is_gone(row.owner)}
    return LoadsAtWork(frozenset(row.load_id for row in found) - dead, frozenset(dead))


def count_claims(ledger: Ledger, load_ids: Collection[str]) -> dict[str, int]:
    """How many files each of these loads holds while it is not over."""
    query = (
        select(claims.c.load_id, func.count())
        .where(claims.c.load_id.in_(load_ids))
        .group_by(claims.c.load_id)
    )
    with ledger.read() as connection:
        return {row[0]: int(row[1]) for row in connection.execute(query)}


def _date(days: int) -> date:
    return datetime.fromtimestamp(days * DAY / 1e6, UTC).date()
