"""A ledger of each kind, and a table in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.ledger import Ledger, TableKey, TableRow, open_ledger
from calque.ledger.tables import register_table
from tests.servers.postgres import PostgresServer

KEY = TableKey("delta", "file:///lake/t", "id-1", database="file:///lake", name="t")


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now


def make_ledger(url: str) -> None:
    """An empty ledger in a new database."""
    open_ledger(url).close()


@pytest.fixture(params=("sqlite", "postgres"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the ledger lives."""
    if request.param == "sqlite":
        yield str(tmp_path / "ledger.db")
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    made = server.prepared(make_ledger)
    yield made
    server.drop(made)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(url: str, clock: Clock) -> Iterator[Ledger]:
    """An empty ledger of each kind."""
    with open_ledger(url, clock=clock) as opened:
        yield opened


@pytest.fixture
def table(ledger: Ledger) -> TableRow:
    """A table the ledger knows."""
    return register_table(ledger, KEY)
