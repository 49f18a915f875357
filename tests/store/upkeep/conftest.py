"""Real stores on either database, small segments on a few nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calque.store.nodes.erasure import Redundancy
from tests.servers.postgres import PostgresServer
from tests.store.upkeep.kept_store import KeptStore
from tests.store.world import make_metabase

TWO_OF_FOUR = Redundancy.of(2, 4, share_size=50)


@pytest.fixture(params=["sqlite", "postgresql"])
def any_database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Both databases: None means SQLite in the folder."""
    if request.param == "sqlite":
        yield None
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.prepared(make_metabase)
    yield url
    server.drop(url)


@pytest.fixture
def make_store(tmp_path: Path) -> Iterator[Callable[..., KeptStore]]:
    """Makes stores of any number of nodes, and closes them."""
    made: list[KeptStore] = []

    def make(
        redundancy: Redundancy = TWO_OF_FOUR, nodes: int = 0, database: str | None = None
    ) -> KeptStore:
        store = KeptStore.make(tmp_path / f"store{len(made)}", redundancy, nodes, database)
        made.append(store)
        return store

    yield make
    for store in made:
        store.close()


@pytest.fixture
def kept(make_store: Callable[..., KeptStore], any_database: str | None) -> KeptStore:
    """Two of four pieces on six nodes, on each database."""
    return make_store(nodes=6, database=any_database)


@pytest.fixture
def plain(make_store: Callable[..., KeptStore]) -> KeptStore:
    """The same on SQLite, where the database does not matter."""
    return make_store(nodes=6)
