"""Engines for PostgreSQL: a silent server is noticed, whoever waits for it."""

from __future__ import annotations

import random
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, make_url

from calque.databases import postgres as sql_postgres
from calque.databases.postgres import LIVENESS
from calque.errors import ConfigInvalid, Unavailable
from calque.ledger import open_ledger
from calque.store.metabase.engine.database import Database
from tests.servers.postgres import PostgresServer


def ledger_parameters(url: str) -> dict[str, str]:
    with open_ledger(url) as ledger, ledger.read() as connection:
        driver: Any = connection.connection.driver_connection
        return dict(driver.info.get_parameters())


def metabase_parameters(url: str) -> dict[str, str]:
    database = Database.open(url)
    try:
        with database._connection() as driver, database.engine.connect() as session:
            sessions: Any = session.connection.driver_connection
            assert sessions.info.get_parameters() == driver.info.get_parameters()
            return dict(driver.info.get_parameters())
    finally:
        database.close()


def test_both_wait_equally_long(postgres: PostgresServer) -> None:
    """Ledger and metabase give a silent server up after the same time; a URL may say otherwise."""
    url = postgres.database()
    for said, expected in (
        ("", LIVENESS),
        ("&keepalives_idle=7", {**LIVENESS, "keepalives_idle": "7"}),
    ):
        for parameters in (ledger_parameters(url + said), metabase_parameters(url + said)):
            assert {name: parameters.get(name) for name in LIVENESS} == expected
    postgres.drop(url)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_server_that_never_answers(silent_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither waits for ever: without a limit this test would not end."""
    monkeypatch.setattr(sql_postgres, "LIVENESS", {**LIVENESS, "connect_timeout": "2"})
    url = f"postgresql://u@127.0.0.1:{silent_port}/d"
    with pytest.raises(Unavailable):
        open_ledger(url)
    database = Database.open(url)
    with pytest.raises(Unavailable):
        database.read(lambda transaction: transaction.now)
    database.close()


def test_limits_are_not_in_the_name_of_the_ledger(postgres: PostgresServer) -> None:
    """Messages name the ledger as the user did, without the password."""
    url = postgres.database()
    with open_ledger(url) as ledger:
        assert "keepalives" not in ledger.where
    postgres.drop(url)


def test_a_url_that_cannot_be_read() -> None:
    """It is said without showing it: it may hold a password."""
    with pytest.raises(ConfigInvalid) as caught:
        open_ledger("postgresql://u:s3cr3t@h:port/d")
    assert "s3cr3t" not in str(caught.value)


def test_ctrl_c_while_a_connection_is_tried_is_ctrl_c(postgres: PostgresServer) -> None:
    """A signal between question and answer is raised as it is, and the engine lives on."""
    url = make_url(postgres.database())
    engine = sql_postgres.open_postgres(url, what="a test", pool_pre_ping=True, pool_size=2)
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    moments = random.Random(1)
    try:
        for _ in range(150):
            with pytest.raises(KeyboardInterrupt):
                strike_while_trying(engine, moments.uniform(0.00005, 0.0015))
    finally:
        signal.signal(signal.SIGUSR1, before)
        engine.dispose()


def strike_while_trying(engine: Engine, seconds: float) -> None:
    engine.connect().close()
    me = threading.get_ident()
    threading.Timer(seconds, signal.pthread_kill, (me, signal.SIGUSR1)).start()
    while True:
        engine.connect().close()
