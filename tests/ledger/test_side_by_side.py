"""Loaders that use a PostgreSQL ledger at the same moment, statement against statement."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import event, insert

from calque.errors import Unavailable
from calque.ledger import Ledger, TableRow, database, open_ledger
from calque.ledger.abort import abort
from calque.ledger.adopt import adopt
from calque.ledger.claim import ENDED
from calque.ledger.files import mget, renew, scan
from calque.ledger.finalise import finalise
from calque.ledger.lease import dead_loads, renew_lease
from calque.ledger.manifest import Manifest
from calque.ledger.prepare import prepare
from calque.ledger.schema import claims
from calque.ledger.tables import register_table
from tests.ledger.conftest import KEY
from tests.ledger.filling import OWNER, begin, load, manifest

CONNECTIONS = 15
"""As many as a ledger has at once."""

pytestmark = pytest.mark.parametrize("url", ["postgres"], indirect=True)


def after_insert(ledger: Ledger, act: Callable[[], object]) -> None:
    """Let something happen right after this ledger has asked for its claims."""

    def happen(_c: object, _cursor: object, statement: str, *_rest: Any) -> None:
        if statement.startswith("INSERT INTO calque_claims"):
            act()

    event.listen(ledger.engine, "after_cursor_execute", happen)


def test_a_holder_that_gives_up_meanwhile(url: str, ledger: Ledger, table: TableRow) -> None:
    """A file whose holder aborts between our asking and our looking is not taken for loaded."""
    begin(ledger, table, "A", ["a", "b"])
    with open_ledger(url) as other:
        after_insert(other, lambda: abort(ledger, "A", "given up", Manifest()))
        claimed = begin(other, table, "B", ["a", "c"])
    assert claimed.granted == ("c",)
    assert claimed.held == {"a": ENDED}
    assert claimed.loaded == ()


def test_a_holder_that_ends_meanwhile(url: str, ledger: Ledger, table: TableRow) -> None:
    """A file whose holder has loaded it between our asking and our looking is loaded."""
    begin(ledger, table, "A", ["a"])
    prepare(ledger, "A", OWNER, manifest(ledger, ["a"]))
    with open_ledger(url, clock=ledger.now) as other:
        after_insert(other, lambda: finalise(ledger, "A", 1))
        claimed = begin(other, table, "B", ["a", "c"])
    assert claimed.granted == ("c",)
    assert claimed.held == {}
    assert claimed.loaded == ("a",)


def test_a_load_is_rebuilt_once(url: str, ledger: Ledger, table: TableRow) -> None:
    """Of several that take the same lost load in at once, one does, and none fails."""
    barrier = threading.Barrier(4)
    found = manifest(ledger, [f"f{number}" for number in range(200)])

    def rebuild(_number: int) -> bool:
        with open_ledger(url) as mine:
            barrier.wait(30)
            return adopt(mine, table, "L", 1, found)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(rebuild, range(4))) == [False, False, False, True]


def test_a_frozen_transaction_is_ended(
    url: str, ledger: Ledger, table: TableRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loader that froze inside a transaction does not hold up the others for ever."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 1)
    row = {"table_number": table.number, "location": "a", "load_id": "frozen"}
    begin(ledger, table, "frozen", [])
    granted: list[str] = []

    def freeze(sleeper: Ledger) -> None:
        with sleeper.write() as connection:
            connection.execute(insert(claims).values(row))
            granted.extend(begin(ledger, table, "B", ["a"]).granted)
            connection.execute(insert(claims).values({**row, "location": "b"}))

    with open_ledger(url) as sleeper, pytest.raises(Unavailable):
        freeze(sleeper)
    assert granted == ["a"]


def test_a_machine_with_a_wrong_clock(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases go by the database's clock: a machine whose own is wrong takes nobody for dead."""
    with open_ledger(url) as right:
        table = register_table(right, KEY)
        begin(right, table, "A", ["a"])
        true = time.time_ns
        monkeypatch.setattr(database.time, "time_ns", lambda: true() + 3600 * 10**9)
        with open_ledger(url) as wrong:
            assert dead_loads(wrong, table) == []
            begin(wrong, table, "B", ["b"], lease=0)
        monkeypatch.undo()
        assert [one.load_id for one in dead_loads(right, table)] == ["B"]


def test_a_clock_that_is_set_meanwhile(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader whose machine's clock jumps holds its lease, and takes nobody for dead."""
    with open_ledger(url) as steady, open_ledger(url) as jumping:
        table = register_table(steady, KEY)
        begin(jumping, table, "A", ["a"])
        begin(steady, table, "B", ["b"])
        true = time.time_ns
        for hours in (-1, 1):
            shift = hours * 3600 * 10**9
            monkeypatch.setattr(database.time, "time_ns", lambda shift=shift: true() + shift)
            assert renew_lease(jumping, "A", OWNER, 60)
            assert dead_loads(jumping, table) == []
            monkeypatch.undo()
            assert dead_loads(steady, table) == []


def test_more_readers_than_connections(ledger: Ledger, table: TableRow) -> None:
    """Whoever compares a stage and loads meanwhile keeps no connection that others wait for."""
    load(ledger, table, "A", ["a", "b"])
    scans = [scan(ledger, table) for _ in range(CONNECTIONS + 1)]
    assert [next(one).location for one in scans] == ["a"] * len(scans)
    begin(ledger, table, "B", ["c"])


def test_all_claim_with_the_last_connections(url: str) -> None:
    """Claims by more threads than there are connections wait, and need one connection each."""
    with open_ledger(url) as ledger, ThreadPoolExecutor(2 * CONNECTIONS) as pool:
        table = register_table(ledger, KEY)
        together = threading.Barrier(CONNECTIONS)
        event.listen(ledger.engine, "begin", lambda _c: wait_for(together))
        names = [f"load{number}" for number in range(CONNECTIONS)]
        claimed = pool.map(lambda name: begin(ledger, table, name, [name]), names)
        assert [one.granted for one in claimed] == [(name,) for name in names]


def wait_for(others: threading.Barrier) -> None:
    with suppress(threading.BrokenBarrierError):
        others.wait(timeout=5)
        others.abort()


def test_renewal_waits_for_nobody(url: str, ledger: Ledger, table: TableRow) -> None:
    """A record that another is writing is passed over by a renewal; the others are renewed."""
    load(ledger, table, "A", ["a", "b"])
    before = mget(ledger, table, ["a", "b"])
    begin(ledger, table, "B", ["a"], force=True)
    prepare(ledger, "B", OWNER, manifest(ledger, ["a"]))
    with open_ledger(url, clock=lambda: ledger.now() + 1000) as other:

        def renewed(*_: object) -> None:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(renew, other, table, ["a", "b"]).result(timeout=20)

        event.listen(ledger.engine, "commit", renewed, once=True)
        finalise(ledger, "B", 2)
    after = mget(ledger, table, ["a", "b"])
    assert after["a"].load_id == "B"
    assert after["b"].expires_at == before["b"].expires_at + 1000
