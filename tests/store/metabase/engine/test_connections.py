"""Connections: too few for all, broken, interrupted, or allowed less than ours."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from calque.errors import IntegrityError, NotFound, Unavailable
from calque.store.metabase.accounts.quota import PROJECT_LIMITS
from calque.store.metabase.copies.begin_copy import BeginCopy, begin_copy
from calque.store.metabase.engine import connections, libpq
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.libpq import execute_prepared
from calque.store.metabase.engine.locks import LOCK_FAMILIES
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.engine.pools import POOL_SIZE
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.fsck import fsck
from tests.servers.postgres import PostgresServer
from tests.store.world import ONE_INLINE, Clock, World, in_parallel

OTHERS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"


def most_of(world: World) -> int:
    """How many connections are lent at a time."""
    return world.database._connections._most


@pytest.fixture
def postgres_world(postgres: PostgresServer, clock: Clock) -> Iterator[World]:
    """A metabase in a database of its own, whole when the test is over."""
    url = postgres.database()
    database = Database.open(url, clock=clock)
    migrate(database)
    yield World(database, clock)
    findings = fsck(database)
    database.close()
    postgres.drop(url)
    assert findings == []


def _cut_all(world: World) -> None:
    """End every connection to the database, as a server that restarts does."""
    admin = Database.open(world.database.engine.url.render_as_string(hide_password=False))
    with admin.engine.connect() as session:
        session.execute(text(f"SELECT pg_terminate_backend(pid) {OTHERS}"))
        deadline = time.monotonic() + 30
        while session.execute(text(f"SELECT count(*) {OTHERS}")).scalar():
            assert time.monotonic() < deadline
            session.rollback()
    admin.close()


def _copy(world: World) -> object:
    return world.copy(world.at("a"), world.at("b"))


def _upload(world: World) -> object:
    return world.upload("b")


def _read(world: World) -> object:
    return world.download(world.at("a"))


def _look_at_nothing(world: World) -> object:
    return world.database.read(lambda transaction: None)


def _look(world: World) -> object:
    return begin_copy(world.database, BeginCopy(world.at("a"), world.at("b")))


@pytest.mark.parametrize("action", [_copy, _upload, _read, _look])
def test_a_restarted_server_is_not_noticed(
    postgres_world: World, action: Callable[[World], object]
) -> None:
    """Connections that a restart has cut are replaced; nothing fails, and nothing is done twice."""
    postgres_world.upload("a")
    _copy(postgres_world)
    postgres_world.delete(postgres_world.at("b"))
    for _ in range(3):
        _cut_all(postgres_world)
        assert action(postgres_world)


def test_a_cut_in_the_middle_begins_again(postgres_world: World) -> None:
    """What ran before the cut is gone with its transaction, and runs once more."""
    postgres_world.upload("a")
    tries: list[int] = []

    def work(transaction: Transaction) -> None:
        tries.append(1)
        transaction.rows(PROJECT_LIMITS, {"project": postgres_world.project_id})
        transaction._connection.execute(
            "UPDATE projects SET limit_bytes = coalesce(limit_bytes, 0) + 1"
        )
        if len(tries) == 1:
            _cut_all(postgres_world)
        transaction.rows(PROJECT_LIMITS, {"project": postgres_world.project_id})

    postgres_world.database.write(work)
    assert len(tries) == 2
    rows = postgres_world.table("projects")
    assert [row[4] for row in rows] == [1]


def test_a_cut_during_commit_is_said(postgres_world: World) -> None:
    """Whether it was committed is not known, so it is not simply done again."""
    tries: list[int] = []

    def work(transaction: Transaction) -> None:
        tries.append(1)
        transaction.rows(PROJECT_LIMITS, {"project": postgres_world.project_id})
        _cut_all(postgres_world)

    with pytest.raises(Unavailable, match="may be done or not"):
        postgres_world.database.write(work)
    assert len(tries) == 1
    postgres_world.upload("a")


def test_more_callers_than_connections(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes when all are lent waits for the next one that is given back."""
    monkeypatch.setattr(connections, "MAX_WAIT_SECONDS", 20.0)
    world.upload("a")

    def caller() -> None:
        for _ in range(20):
            _look(world)
            world.database.read(lambda transaction: time.sleep(0.001))

    callers = [caller] * (most_of(world) + 2 * POOL_SIZE)
    assert in_parallel(callers, threads=len(callers)) == [None] * len(callers)


def test_whoever_waits_for_a_connection_is_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that give back and take again at once leave room for those who came before them."""
    monkeypatch.setattr(connections, "MAX_WAIT_SECONDS", 5.0)
    world.upload("a")
    over = threading.Event()

    def greedy() -> None:
        while not over.is_set():
            _look(world)

    def modest() -> None:
        try:
            for _ in range(20):
                _look(world)
        finally:
            over.set()

    callers = [greedy] * most_of(world) + [modest] * 2
    assert in_parallel(callers, threads=len(callers)) == [None] * len(callers)


def test_a_place_in_the_line_that_is_given_up_costs_no_connection(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was served while leaving passes on what it got: a connection, or leave to open one."""
    monkeypatch.setattr(connections, "MAX_WAIT_SECONDS", 0.2)
    pool = world.database._connections
    monkeypatch.setattr(connections, "_Waiter", _Interrupted)
    for _ in range(2 * most_of(world)):
        with pytest.raises(KeyboardInterrupt):
            pool._wait_for_one()
    monkeypatch.undo()
    with ExitStack() as lent:
        for _ in range(most_of(world)):
            lent.enter_context(world.database._connection())
    world.upload("a")


class _Interrupted(connections._Waiter):
    """Whoever waits here is interrupted the moment it is served."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self.ready = _InterruptedGate(self.ready)  # type: ignore[assignment]


class _InterruptedGate:
    def __init__(self, gate: threading.Lock) -> None:
        self._gate = gate

    def release(self) -> None:
        self._gate.release()

    def acquire(self, timeout: float) -> bool:
        assert self._gate.acquire(timeout=timeout)
        raise KeyboardInterrupt


def test_all_connections_busy_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for ever; when one is given back the next is served."""
    monkeypatch.setattr(connections, "MAX_WAIT_SECONDS", 0.2)
    with ExitStack() as lent:
        for _ in range(most_of(world)):
            lent.enter_context(world.database._connection())
        with pytest.raises(Unavailable, match="connections to the metabase were busy"):
            _look_at_nothing(world)
    world.upload("a")


def test_without_leave_for_temporary_things(postgres: PostgresServer, clock: Clock) -> None:
    """Where a user may not make procedures, copies go the long way."""
    url = postgres.database()
    owner = Database.open(url, clock=clock)
    migrate(owner)
    name = url.split("@/", 1)[1].split("?", 1)[0]
    with owner.engine.begin() as session:
        session.execute(text(f'REVOKE ALL ON DATABASE "{name}" FROM PUBLIC'))
        session.execute(text(f"CREATE ROLE r_{name} LOGIN"))
        session.execute(text(f'GRANT CONNECT ON DATABASE "{name}" TO r_{name}'))
        session.execute(
            text(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO r_{name}")
        )
    restricted = Database.open(url.replace("postgres@/", f"r_{name}@/"), clock=clock)
    world = World(restricted, clock)
    world.upload("a")
    for number in range(3):
        world.copy(world.at("a"), world.at(f"b{number}"))
    assert world.download(world.at("b2")) == world.download(world.at("a"))
    assert fsck(restricted) == []
    restricted.close()
    owner.close()
    postgres.drop(url)


@pytest.fixture
def connection(postgres_world: World) -> Iterator[Any]:
    """A connection as the metabase drives it."""
    with postgres_world.database._connection() as driven:
        yield driven


VALUES = [
    None,
    b"",
    bytes(range(256)),
    b"x" * 5_000_000,
    "",
    "ünïcode 日本 \U0001f600",
    0,
    -1,
    2**63 - 1,
    -(2**63),
    True,
    False,
]


def test_values_come_back_as_they_went(connection: Any) -> None:
    """Each type that a metabase has, at its limits, and more than a socket takes at once."""
    kinds = {bytes: "bytea", str: "text", int: "bigint", bool: "boolean", type(None): "bytea"}
    casts = ", ".join(f"${n}::{kinds[type(value)]}" for n, value in enumerate(VALUES, 1))
    for _ in range(2):
        assert execute_prepared(connection, f"SELECT {casts}", VALUES) == [tuple(VALUES)]
    assert execute_prepared(connection, "SELECT 1::integer, 2::smallint, 'w'::varchar", []) == [
        (1, 2, "w")
    ]
    assert execute_prepared(connection, "SELECT 1 WHERE false", []) == []


def test_a_refused_statement_leaves_the_connection_usable(connection: Any) -> None:
    """What the server says is raised with its SQLSTATE, when preparing and when executing."""
    for text_, state in [("SELECT nonsense", "42703"), ("SELECT 1 / $1::bigint", "22012")]:
        with pytest.raises(psycopg.Error) as caught:
            execute_prepared(connection, text_, [0] if "$1" in text_ else [])
        assert caught.value.sqlstate == state
        assert execute_prepared(connection, "SELECT 7::bigint", []) == [(7,)]


ASLEEP = 3600
"""Seconds: a wait that is not ended by the signal fails the test by its own time limit."""


def _interrupt_sleeper(url: str) -> None:
    """Ctrl-C for the main thread once its statement is seen to sleep."""
    admin = Database.open(url)
    deadline = time.monotonic() + 60
    with admin.engine.connect() as session:
        while not session.execute(
            text(f"SELECT count(*) {OTHERS} AND wait_event = 'PgSleep'")
        ).scalar():
            assert time.monotonic() < deadline
            session.rollback()
            time.sleep(0.01)
    admin.close()
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_ctrl_c_ends_a_wait(postgres_world: World) -> None:
    """Whoever waits for an answer is interrupted at once, and the answer reaches nobody else."""
    url = postgres_world.database.engine.url
    with ThreadPoolExecutor(1) as pool:
        struck = pool.submit(_interrupt_sleeper, url.render_as_string(hide_password=False))
        with pytest.raises(KeyboardInterrupt), postgres_world.database._connection() as connection:
            execute_prepared(connection, f"SELECT pg_sleep({ASLEEP})::text, 'late'", [])
        struck.result()
    with postgres_world.database._connection() as connection:
        assert execute_prepared(connection, "SELECT 'mine'::text", []) == [("mine",)]


def test_refusals_do_not_forget_plans(postgres_world: World) -> None:
    """A rollback keeps what the connection has prepared."""
    postgres_world.upload("a")
    postgres_world.copy(postgres_world.at("a"), postgres_world.at("b"))

    def prepared() -> int:
        with postgres_world.database._connection() as connection:
            return int(
                execute_prepared(connection, "SELECT count(*) FROM pg_prepared_statements", [])[0][
                    0
                ]
            )

    before = prepared()
    with pytest.raises(NotFound):
        postgres_world.copy(postgres_world.at("a"), postgres_world.at("b", "nowhere"))

    def refused(transaction: Transaction) -> None:
        transaction.rows(PROJECT_LIMITS, {"project": postgres_world.project_id})
        raise IntegrityError("on purpose")

    with pytest.raises(IntegrityError):
        postgres_world.database.write(refused)
    assert prepared() >= before > 5


@pytest.mark.parametrize(("said", "expected"), [("", "30"), ("&keepalives_idle=7", "7")])
def test_a_silent_server_is_noticed_by_tcp(
    postgres: PostgresServer, said: str, expected: str
) -> None:
    """Connections ask whether the server is still there, as often as the URL says or by default."""
    url = postgres.database()
    database = Database.open(url + said)
    try:
        with database._connection() as connection:
            given = connection.info.get_parameters()
            assert given["keepalives_idle"] == expected
            assert given["tcp_user_timeout"] == "60000"
        with database.engine.connect() as session:
            driver: Any = session.connection.driver_connection
            assert driver.info.get_parameters()["keepalives_idle"] == expected
    finally:
        database.close()
        postgres.drop(url)


def test_plans_of_an_empty_table_do_not_last(
    postgres_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the server knew a table to be empty, rows are found by an index as the table grows."""
    world = postgres_world
    monkeypatch.setattr(libpq, "PLANS_LAST", 0.0)
    with world.database.engine.begin() as session:
        session.execute(text("ANALYZE"))
    given = {"roots": [bytes(16)], "streams": [bytes(16)]}
    counted = (
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables"
        " WHERE relname = 'objects'"
    )

    def look(transaction: Transaction) -> int:
        """How many objects are read to find one by its stream."""
        driver = transaction._connection
        transaction.rows(LOCK_FAMILIES, given)
        before = driver.execute(counted).fetchone()[0]
        transaction.rows(LOCK_FAMILIES, given)
        return int(driver.execute(counted).fetchone()[0] - before)

    assert world.database.write(look) == 0
    for number in range(50):
        world.upload(f"{number}", ONE_INLINE)
    assert world.database.write(look) == 0
