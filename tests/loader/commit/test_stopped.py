"""Ctrl-C between any two lines of a load: nothing is held after it, nothing half-made is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from psycopg.pq import TransactionStatus
from sqlalchemy import select

import calque
from calque.errors import NotFound
from calque.ledger import Ledger, open_ledger
from calque.ledger.claim import claim
from calque.ledger.schema import claims, loads
from calque.loader.commit.tables import open_table
from calque.loader.commit.truncate import truncate_table
from tests.ledger.conftest import make_ledger
from tests.loader.loader import Place
from tests.loader.world import assert_settled, ids, write_file, write_files
from tests.servers.postgres import PostgresServer

SOURCES = Path(calque.__file__).parent
STRUCK = tuple(
    str(SOURCES / one)
    for one in ("loader/batch.py", "loader/load_batches.py", "loader/commit", "ledger", "databases")
)
LONG_LEASE = 600.0
"""Nobody takes a load for dead while a test runs, but by asking the ledger."""


class Strike:
    """Ctrl-C at one of the lines that this thread runs in our steps; ``lines`` counts them."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.lines = 0

    @contextmanager
    def armed(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._step if frame.f_code.co_filename.startswith(STRUCK) else None

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._step


def prepare(place: Place, way: str) -> tuple[dict[str, Any], list[int]]:
    """What a way to load needs: its options, and the rows that there are once it is through."""
    expected = write_files(place.stage, 2)
    if way == "new":
        return {}, expected
    place.load(lease_seconds=LONG_LEASE)
    if way == "replace":
        rest = [one for one in expected if one >= 100]
        return {"on_changed": "replace"}, rest + write_file(place.stage, 0, generation=1)
    return {"purge": True}, expected + write_files(place.stage, 1, first=7)


def assert_nothing_held(place: Place) -> None:
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        assert connection.execute(select(claims)).all() == []
        assert set(connection.execute(select(loads.c.state)).scalars()) <= {"COMMITTED", "ABORTED"}
    try:
        open_table(place.table, place.settings).open()
    except NotFound:
        return
    assert ids(place), "a table without a row"


def count_lines(place: Place, way: str) -> int:
    options, _ = prepare(place, way)
    strike = Strike()
    with strike.armed():
        place.load(lease_seconds=LONG_LEASE, **options)
    return strike.lines


def strike_at(place: Place, way: str, line: int) -> None:
    options, expected = prepare(place, way)
    # It may be over before: the first load of a process runs lines that others do not.
    with Strike(line).armed(), suppress(KeyboardInterrupt):
        place.load(lease_seconds=LONG_LEASE, **options)
    assert_nothing_held(place)
    again = place.load(lease_seconds=LONG_LEASE, **options)
    assert again.recovered == []
    assert_settled(place, expected, removed=way == "replace")


def try_lines(folder: Path, kind: str, way: str, strikes: int) -> None:
    """Strike as often, from the first line to the last."""

    def place(name: str) -> Place:
        return Place(folder / name, kind, str(folder / name / "ledger.db"))

    lines = count_lines(place("unharmed"), way)
    for number in range(strikes):
        strike_at(place(str(number)), way, 1 + number * (lines - 1) // strikes)


@pytest.mark.parametrize(
    ("kind", "way", "strikes"),
    [("delta", "new", 6), ("iceberg", "new", 6), ("delta", "replace", 3), ("iceberg", "purge", 3)],
)
def test_ctrl_c_leaves_nothing_held(tmp_path: Path, kind: str, way: str, strikes: int) -> None:
    """Some lines from the claim to the purge; a table that was made is not left empty."""
    try_lines(tmp_path, kind, way, strikes)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", ["new", "replace", "purge"])
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_ctrl_c_at_many_lines(tmp_path: Path, kind: str, way: str) -> None:
    """The same at hundreds of them."""
    try_lines(tmp_path, kind, way, strikes=150)


SLOW_COMMIT = """
CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    PERFORM pg_sleep(1);
  EXCEPTION WHEN query_canceled THEN
    PERFORM pg_sleep(1);  -- the cancel comes too late
  END;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON calque_claims DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION dawdle()
"""
BUSY = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
"""


def is_busy(ledger: Ledger) -> bool:
    """Whether its server still works for anyone but who asks."""
    with ledger.read() as connection:
        return bool(connection.exec_driver_sql(BUSY).scalar_one())


def is_called_by(frame: FrameType | None, function: Callable[..., Any]) -> bool:
    while frame is not None and frame.f_code is not function.__code__:
        frame = frame.f_back
    return frame is not None


@contextmanager
def struck_in_a_claims_commit() -> Iterator[None]:
    """Ctrl-C when its COMMIT is on the way to PostgreSQL, and before the answer is waited for."""

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        return step if frame.f_code.co_name == "_exec_command" else None

    def step(frame: FrameType, event: str, arg: Any) -> Any:
        sent = frame.f_locals["self"].pgconn.transaction_status == TransactionStatus.ACTIVE
        is_commit = frame.f_locals["command"] == b"COMMIT"
        if event == "line" and sent and is_commit and is_called_by(frame, claim):
            sys.settrace(None)
            raise KeyboardInterrupt
        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)


def test_ctrl_c_in_the_commit_of_a_claim(tmp_path: Path, postgres: PostgresServer) -> None:
    """A claim that PostgreSQL grants only after Ctrl-C is released too, not held by its lease."""
    place = Place(tmp_path, "delta", postgres.database())
    expected = write_files(place.stage, 1)
    make_ledger(place.ledger)
    with open_ledger(place.ledger) as ledger:
        with ledger.write() as connection:
            connection.exec_driver_sql(SLOW_COMMIT)
        with struck_in_a_claims_commit(), pytest.raises(KeyboardInterrupt):
            place.load(lease_seconds=LONG_LEASE)
        while is_busy(ledger):
            time.sleep(0.05)
        with ledger.write() as connection:
            connection.exec_driver_sql("DROP TRIGGER dawdle ON calque_claims")
    assert_nothing_held(place)
    again = place.load(lease_seconds=LONG_LEASE)
    assert again.recovered == []
    assert_settled(place, expected)


def test_ctrl_c_while_a_table_is_emptied(simple: Place) -> None:
    """A truncate that is stopped has happened, or not; the next one is not held up by it."""
    expected = write_files(simple.stage, 2)
    simple.load(lease_seconds=LONG_LEASE)
    for line in (200, 400, 600):
        ledger = open_ledger(simple.ledger)
        with Strike(line).armed(), pytest.raises(KeyboardInterrupt):
            truncate_table(simple.table, simple.settings, ledger)
        ledger.close()
        with open_ledger(simple.ledger) as ledger, ledger.read() as connection:
            assert connection.execute(select(claims)).all() == []
            states = set(connection.execute(select(loads.c.state)).scalars())
        assert states <= {"COMMITTED", "ABORTED"}
        simple.load(lease_seconds=LONG_LEASE)
        assert sorted(ids(simple).elements()) == sorted(expected)
