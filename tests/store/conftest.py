"""A metabase on each database, whole again after every test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from calque.databases.errors import code_of
from calque.store.metabase.engine import errors
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.fsck import fsck
from calque.store.metabase.model.records import DeletedPieces, Redundancy
from calque.store.metainfo import MetainfoClient
from calque.store.satellite import Endpoint, SatelliteSettings, serve_metainfo
from tests.servers.postgres import PostgresServer
from tests.store.uplinkish import Client
from tests.store.world import Clock, World, lay_metabase, make_metabase


@pytest.fixture(scope="session")
def postgres_url(postgres: PostgresServer) -> str:
    """A database with the schema, emptied before each use."""
    return postgres.prepared(make_metabase)


def _url(request: pytest.FixtureRequest, tmp_path: Path, dialect: str) -> str:
    if dialect == "sqlite":
        lay_metabase(tmp_path / "meta.db")
        return f"sqlite:///{tmp_path / 'meta.db'}"
    url: str = request.getfixturevalue("postgres_url")
    server: PostgresServer = request.getfixturevalue("postgres")
    server.empty(url, ["alembic_version"])
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty metabase on either database."""
    return _url(request, tmp_path, request.param)


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


@pytest.fixture
def no_deadlock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No two transactions may wait for each other: it would be retried, after a second."""
    deadlocks: list[BaseException] = []
    disturbance_of = errors.disturbance_of

    def note(error: BaseException) -> errors.Disturbed | None:
        if code_of(error) == "40P01":
            deadlocks.append(error)
        return disturbance_of(error)

    monkeypatch.setattr(errors, "disturbance_of", note)
    yield
    assert deadlocks == []


@dataclass
class SatelliteUnderTest:
    """An endpoint, a client of it (in process or over gRPC), and what it freed."""

    endpoint: Endpoint
    client: Client
    freed: list[DeletedPieces]


def _open_satellite(url: str, clock: Clock, settings: SatelliteSettings) -> SatelliteUnderTest:
    freed: list[DeletedPieces] = []

    def delete_pieces(deleted: Sequence[DeletedPieces]) -> Sequence[DeletedPieces]:
        freed.extend(deleted)
        return ()

    endpoint = Endpoint.open(url, settings, delete_pieces=delete_pieces, clock=clock)
    project = endpoint.admin.create_project("satellite")
    for number in (1, 2, 3):
        endpoint.admin.register_node(bytes([number]) * 32, f"memory:///node{number}")
    client = Client(endpoint, endpoint.admin.create_api_key(project.id))
    for name in ("first", "second"):
        client.bucket(name)
    return SatelliteUnderTest(endpoint, client, freed)


@pytest.fixture(params=["sqlite in process", "postgresql in process", "sqlite over gRPC"])
def satellite(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> Iterator[SatelliteUnderTest]:
    """A satellite on each database, reached both ways; whole when the test is over."""
    dialect, _, way = request.param.partition(" ")
    scheme = Redundancy(256, 1, 1, 2, 3)
    url = _url(request, tmp_path, dialect)
    under_test = _open_satellite(url, clock, SatelliteSettings(redundancy=scheme))
    server = None
    if way == "over gRPC":
        server = serve_metainfo(under_test.endpoint)
        under_test.client.satellite = MetainfoClient(server.address)
    yield under_test
    if server is not None:
        under_test.client.satellite.close()
        server.stop(0)
    findings = under_test.endpoint.admin.fsck()
    under_test.endpoint.close()
    assert findings == []
