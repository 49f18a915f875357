"""A load is prepared by whoever holds it."""

from __future__ import annotations

import pytest

from calque.errors import (
    Aborted,
)
from calque.ledger import Ledger, TableRow
from calque.ledger.lease import (
    dead_loads,
    take_over,
)
from calque.ledger.manifest import Manifest
from calque.ledger.prepare import manifest_of, prepare
from tests.ledger.conftest import Clock
from tests.ledger.filling import OWNER, begin


def test_prepare_needs_the_lease_holder(ledger: Ledger, table: TableRow, clock: Clock) -> None:
    """A load that was taken over cannot be prepared by its first owner."""
    begin(ledger, table, "A", ["a"], lease=1)
    clock.now += 2_000_000
    (dead,) = dead_loads(ledger, table)
    assert take_over(ledger, dead, "new/2/2", 60) is not None
    with pytest.raises(Aborted, match="taken over") as told:
        prepare(ledger, "A", OWNER, Manifest())
    assert told.value.retryable  # so that a watch goes on
    assert manifest_of(ledger, "A") is None
