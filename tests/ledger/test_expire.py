"""Records live as long as they are renewed."""

from __future__ import annotations

import pytest

from calque.errors import (
    NotFound,
)
from calque.ledger import Ledger, TableRow
from calque.ledger.expire import expire
from calque.ledger.files import mget, renew, scan
from calque.ledger.history import find_load
from calque.ledger.identity import DAY
from tests.ledger.conftest import Clock
from tests.ledger.filling import load


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
