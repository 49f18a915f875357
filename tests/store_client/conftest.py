"""Real stores in temporary folders: SQLite or PostgreSQL, one node or several."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calque.store.nodes.erasure import Redundancy
from tests.servers.postgres import PostgresServer
from tests.store.world import make_metabase
from tests.store_client.world import World

ONE = Redundancy(share_size=100)
TWO_OF_FOUR = Redundancy.of(2, 4, share_size=50)


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Makes stores; at the end each must be whole, row by row and piece by piece."""
    worlds: list[World] = []

    def make(redundancy: Redundancy = ONE, database: str | None = None, *, nodes: int = 0) -> World:
        folder = tmp_path / f"store{len(worlds)}"
        world = World.make(folder, redundancy, database, nodes=nodes)
        worlds.append(world)
        return world

    yield make
    for world in worlds:
        try:
            world.check()
        finally:
            world.close()


@pytest.fixture(params=["1/1", "2/4"])
def world(request: pytest.FixtureRequest, make_world: Callable[..., World]) -> World:
    """A store with small segments, on one node and on four."""
    return make_world(ONE if request.param == "1/1" else TWO_OF_FOUR)


@pytest.fixture
def plain_world(make_world: Callable[..., World]) -> World:
    """A store on one node, where the number of nodes does not matter."""
    return make_world()


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
def data() -> Callable[[int], bytes]:
    """Random bytes of a size."""
    return os.urandom
