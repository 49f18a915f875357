"""What happened lately, over all tables of the tenant: loads, their days, what is under way."""

from __future__ import annotations

from sqlalchemy import insert

from calque.ledger import Ledger
from calque.ledger.identity import DAY
from calque.ledger.lease import this_process
from calque.ledger.recent import (
    alive_or_dead,
    loads_by_day,
    open_loads,
    recent_loads,
)
from calque.ledger.schema import loads, tables


def note_load(ledger: Ledger, at: int, *, tenant: str = "default", **changes: object) -> int:
    """A load of a table of its own, as a row; the table's number."""
    name = f"{tenant}{at}"
    key = {"tenant": tenant, "catalog": "delta", "address": name, "table_id": "t"}
    row = {"load_id": name, "state": "COMMITTED", "owner": "o", "lease_until": 0}
    row |= {"started_at": at, "base_version": 0, "rows": 7, "errors": 0, **changes}
    with ledger.write() as connection:
        made = connection.execute(insert(tables).values(key).returning(tables.c.number))
        number = int(made.scalar_one())
        connection.execute(insert(loads).values(**row, table_number=number))
    return number


def test_days_are_whole_and_our_own(ledger: Ledger) -> None:
    """No day is left out, none is there twice; other tenants' loads are not ours."""
    now = ledger.now()
    today = now - now % DAY
    note_load(ledger, today, errors=2)
    first = note_load(ledger, today - 1)
    note_load(ledger, today - 3 * DAY)
    note_load(ledger, today, tenant="other")
    days = loads_by_day(ledger, 3)
    assert [each.day.toordinal() - days[0].day.toordinal() for each in days] == [0, 1, 2]
    assert [each[1:] for each in days] == [(0, 0, 0), (1, 7, 0), (1, 7, 2)]
    assert [each.loads for each in loads_by_day(ledger, 3, table=first)] == [0, 1, 0]


def test_loads_by_what_became_of_them(ledger: Ledger) -> None:
    """Newest first: all, of one table, those with trouble since a moment, those not over."""
    number = note_load(ledger, 10)
    note_load(ledger, 20, errors=1)
    note_load(ledger, 30, state="ABORTED")
    note_load(ledger, 40, state="WRITING")
    note_load(ledger, 50, state="WRITING", tenant="other")
    ids = [each.load_id for each in recent_loads(ledger)]
    assert ids == ["default40", "default30", "default20", "default10"]
    assert [each.load_id for each in recent_loads(ledger, table=number)] == ["default10"]
    troubled = recent_loads(ledger, with_trouble=True, since=15)
    assert [each.load_id for each in troubled] == ["default30", "default20"]
    assert recent_loads(ledger, with_trouble=True, since=35) == []
    assert [each.load_id for each in open_loads(ledger)] == ["default40"]


def test_loads_that_are_not_over_run_or_have_died(ledger: Ledger) -> None:
    """By their lease, and by their process where it was one of this machine; our tenant's alone."""
    later = ledger.now() + 600_000_000
    note_load(ledger, 10, state="WRITING", lease_until=later)
    note_load(ledger, 20, state="PREPARED", lease_until=0)
    gone = this_process().rpartition("/")[0] + "/0"
    note_load(ledger, 30, state="WRITING", lease_until=later, owner=gone)
    note_load(ledger, 40, lease_until=0)
    note_load(ledger, 50, state="WRITING", lease_until=later, tenant="other")
    found = alive_or_dead(ledger)
    assert (found.alive, found.dead) == ({"default10"}, {"default20", "default30"})
