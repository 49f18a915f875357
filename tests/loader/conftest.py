"""A place to load in: a stage, a table of each kind, a ledger of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loader.loader import Place
from tests.servers.postgres import PostgresServer

KINDS = ("delta", "iceberg")
LEDGERS = ("sqlite", "postgres")


@pytest.fixture(params=LEDGERS)
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the ledger lives: a file, then a database."""
    if request.param == "sqlite":
        yield str(tmp_path / "ledger.db")
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.database()
    yield url
    server.drop(url)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path, ledger_url: str) -> Place:
    """Each kind of table with each kind of ledger."""
    return Place(tmp_path, request.param, ledger_url)


@pytest.fixture(params=KINDS)
def simple(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of table, with the embedded ledger."""
    return Place(tmp_path, request.param, str(tmp_path / "ledger.db"))


@pytest.fixture
def delta(tmp_path: Path) -> Place:
    """A Delta table with the embedded ledger."""
    return Place(tmp_path, "delta", str(tmp_path / "ledger.db"))
