"""Records live as long as they are renewed."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from calque.errors import (
    NotFound,
)
from calque.ledger import Ledger, TableRow
from calque.ledger.abort import abort
from calque.ledger.expire import expire, expire_some
from calque.ledger.files import mget, renew, scan
from calque.ledger.history import find_load
from calque.ledger.identity import DAY
from calque.ledger.manifest import Manifest
from calque.ledger.schema import errors
from tests.ledger.conftest import Clock
from tests.ledger.filling import begin, load


def test_expiry_and_renewal(ledger: Ledger, table: TableRow, clock: Clock) -> None:
    """A record lives 64 days unless it is renewed; an expired one counts until it is dropped."""
    load(ledger, table, "A", ["a", "b"])
    clock.now += 60 * DAY
    renew(ledger, table, ["a"])
    clock.now += 5 * DAY
    assert [one.location for one in scan(ledger, table)] == ["a", "b"]
    dropped = expire(ledger)
    assert (dropped.files, dropped.loads) == (1, 0)
    assert [one.location for one in scan(ledger, table)] == ["a"]
    assert set(mget(ledger, table, ["a", "b"])) == {"a"}
    clock.now += 65 * DAY
    dropped = expire(ledger)
    assert (dropped.files, dropped.loads) == (1, 1)
    with pytest.raises(NotFound):
        find_load(ledger, "A")


def test_loads_that_came_to_nothing(ledger: Ledger, table: TableRow, clock: Clock) -> None:
    """They go as loads go by, a life after their end, though no record ever led to them."""
    load(ledger, table, "committed", ["a"])
    for name, days in (("old", 40), ("young", 30)):
        begin(ledger, table, name, ["b"])
        abort(ledger, name, "it failed", Manifest(errors={"b": b"packed"}))
        clock.now += days * DAY
    renew(ledger, table, ["a"])
    assert expire_some(ledger, table, lambda _: True).loads == 1
    assert errors_of_loads(ledger) == ["young"]
    for name in ("committed", "young"):
        find_load(ledger, name)
    with pytest.raises(NotFound):
        find_load(ledger, "old")


def test_a_tenant_keeps_what_failed(ledger: Ledger, table: TableRow, clock: Clock) -> None:
    """A tenant whose records live for a day only drops no other tenant's failed loads."""
    begin(ledger, table, "failed", ["b"])
    abort(ledger, "failed", "it failed", Manifest())
    clock.now += 3 * DAY
    ledger.tenant, ledger.life = "hasty", DAY
    assert expire_some(ledger, table, lambda _: True).loads == 0
    ledger.tenant = "default"
    assert expire_some(ledger, table, lambda _: True).loads == 1


def errors_of_loads(ledger: Ledger) -> list[str]:
    """The loads of which rejected rows are kept."""
    with ledger.read() as connection:
        return list(connection.execute(select(errors.c.load_id)).scalars())
