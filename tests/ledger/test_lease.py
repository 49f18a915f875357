"""Who lives, and who takes over."""

from __future__ import annotations

from calque.ledger import Ledger, TableRow
from calque.ledger.lease import (
    dead_loads,
    process_is_gone,
    renew_lease,
    take_over,
    this_process,
)
from tests.ledger.conftest import Clock
from tests.ledger.filling import OWNER, begin


def test_take_over_is_won_once(ledger: Ledger, table: TableRow, clock: Clock) -> None:
    """Of two that meet a dead load only one recovers it; a renewed lease is nobody's."""
    begin(ledger, table, "A", ["a"], lease=1)
    assert dead_loads(ledger, table) == []
    clock.now += 2_000_000
    (dead,) = dead_loads(ledger, table)
    assert take_over(ledger, dead, "one/2/2", 60) is not None
    assert take_over(ledger, dead, "two/3/3", 60) is None
    assert not renew_lease(ledger, "A", OWNER, 60)
    assert renew_lease(ledger, "A", "one/2/2", 60)


def test_a_process_that_is_gone_is_known() -> None:
    """On one machine a dead process needs no lease to run out; any doubt counts as alive."""
    me = this_process()
    assert not process_is_gone(me)
    assert not process_is_gone(f"{me}#1")
    assert not process_is_gone("other-machine/1/1")
    machine = me.rsplit("/", 2)[0]
    assert process_is_gone(f"{machine}/{2**22 + 7}/1")
