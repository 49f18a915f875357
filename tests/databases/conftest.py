"""A PostgreSQL for all tests of what is shared by the databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.postgres import PostgresServer, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server; every test makes databases of its own."""
    with running_postgres() as server:
        yield server
