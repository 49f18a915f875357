"""A place to load in: a stage, a table of each kind, a ledger of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, product
from pathlib import Path

import pytest

from tests.ledger.conftest import make_ledger
from tests.loader.loader import Place
from tests.servers.postgres import PostgresServer

KINDS = ("delta", "iceberg")
LEDGERS = ("sqlite", "postgres")
PAIRS = tuple(zip(KINDS, cycle(LEDGERS), strict=False))
"""What is tried by default. Tables and ledgers know nothing of each other: the other pairs run the
same code again, and are for soak. The crash matrix tries all four by default."""


SOAK = pytest.mark.soak


@pytest.fixture(params=LEDGERS)
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the ledger lives: a file, then a database."""
    with _ledger(request.param, tmp_path, request) as url:
        yield url


@contextmanager
def _ledger(kind: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    if kind == "sqlite":
        yield str(folder / "ledger.db")
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.prepared(make_ledger)
    yield url
    server.drop(url)


@pytest.fixture(
    params=[
        pytest.param(pair, id="-".join(pair), marks=() if pair in PAIRS else SOAK)
        for pair in product(KINDS, LEDGERS)
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Each kind of table, and each kind of ledger; in soak each with each."""
    kind, ledger = request.param
    with _ledger(ledger, tmp_path, request) as url:
        yield Place(tmp_path, kind, url)


@pytest.fixture(params=KINDS)
def simple(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of table, with the embedded ledger."""
    return Place(tmp_path, request.param, str(tmp_path / "ledger.db"))


@pytest.fixture
def delta(tmp_path: Path) -> Place:
    """A Delta table with the embedded ledger."""
    return Place(tmp_path, "delta", str(tmp_path / "ledger.db"))
