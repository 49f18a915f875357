"""A metabase on each database, whole again after every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from calque.store.metabase.database import Database
from calque.store.metabase.fsck import fsck
from calque.store.metabase.migrate import migrate
from calque.store.metabase.schema import metadata
from calque.testing.postgres import PostgresServer, running_postgres
from tests.store.world import Clock, World


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL server for all tests of this directory."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres: PostgresServer) -> str:
    """A database with the schema, emptied before each use."""
    url = postgres.database()
    database = Database.open(url)
    migrate(database)
    database.close()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty metabase on either database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'meta.db'}"
    url: str = request.getfixturevalue("postgres_url")
    _empty(url)
    return url


@pytest.fixture
def clock() -> Clock:
    """The time of the test."""
    return Clock()


@pytest.fixture
def database(database_url: str, clock: Clock) -> Iterator[Database]:
    """A migrated metabase; nothing may be wrong with it when the test is over."""
    opened = Database.open(database_url, clock=clock)
    migrate(opened)
    yield opened
    findings = fsck(opened)
    opened.close()
    assert findings == []


@pytest.fixture
def world(database: Database, clock: Clock) -> World:
    """A project with buckets and nodes."""
    return World(database, clock)


def _empty(url: str) -> None:
    database = Database.open(url)
    names = ", ".join(table.name for table in metadata.sorted_tables)
    with database.engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {names}"))
    database.close()
