"""Writers on SQLite share commits, and none of them notices."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from calque.errors import NotFound, ResourceExhausted
from calque.store.metabase.create_bucket import INSERT_BUCKET
from calque.store.metabase.database import Database
from calque.store.metabase.faults import Disturbed
from calque.store.metabase.lookup import BUCKET_EXISTS
from calque.store.metabase.migrate import migrate
from calque.store.metabase.shared_commits import MAX_SHARED, SharedCommits
from calque.store.metabase.transaction import Transaction

PROJECT = b"p" * 16
Work = Callable[[Transaction], Any]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty metabase on SQLite."""
    opened = Database.open(f"sqlite:///{tmp_path / 'meta.db'}")
    migrate(opened)
    yield opened
    opened.close()


def _insert(name: str) -> Work:
    """A work that adds a bucket and tells in which thread it ran."""

    def work(transaction: Transaction) -> int:
        row = {"project_id": PROJECT, "name": name, "created_at": 1, "placement": 0}
        assert transaction.run(INSERT_BUCKET, row) == 1
        return threading.get_ident()

    return work


def _has(database: Database, name: str) -> bool:
    return bool(database.look(BUCKET_EXISTS, {"project_id": PROJECT, "bucket": name}))


def _line(database: Database) -> SharedCommits:
    assert database._shared is not None
    return database._shared


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@contextmanager
def _led(database: Database) -> Iterator[Callable[[], None]]:
    """A writer that leads and waits until the given function is called."""
    inside, go_on = threading.Event(), threading.Event()

    def hold(_: Transaction) -> None:
        inside.set()
        assert go_on.wait(30)

    with ThreadPoolExecutor(1) as pool:
        leader = pool.submit(database.write, hold)
        assert inside.wait(30)
        try:
            yield go_on.set
        finally:
            go_on.set()
            leader.result(30)


@contextmanager
def _lined_up(database: Database, works: list[Work]) -> Iterator[list[Future[Any]]]:
    """``works`` that wait behind one leader; they go on when the block ends."""
    with ThreadPoolExecutor(len(works)) as pool, _led(database):
        waiting = []
        for number, work in enumerate(works, 1):
            waiting.append(pool.submit(database.write, work))
            _until(lambda number=number: len(_line(database)._waiting) == number)  # type: ignore[misc]
        yield waiting


def test_those_who_wait_share_a_commit(database: Database) -> None:
    """Works that lined up run one after the other in the thread of the first of them."""
    with _lined_up(database, [_insert(f"b{number}") for number in range(6)]) as waiting:
        assert not any(_has(database, f"b{number}") for number in range(6))
    assert len({future.result() for future in waiting}) == 1
    assert all(_has(database, f"b{number}") for number in range(6))


def test_a_long_line_is_cut(database: Database) -> None:
    """No commit takes more than its share, and nobody is forgotten."""
    works = [_insert(f"b{number}") for number in range(MAX_SHARED + 3)]
    with _lined_up(database, works) as waiting:
        pass
    assert len({future.result() for future in waiting}) == 2


def test_a_failure_is_its_own(database: Database) -> None:
    """A work that fails takes back its own rows; those before and after it are committed."""

    def failing(transaction: Transaction) -> None:
        _insert("lost")(transaction)
        raise NotFound("as it should")

    works = [_insert("before"), failing, _insert("after")]
    with _lined_up(database, works) as waiting:
        pass
    assert isinstance(waiting[1].exception(), NotFound)
    waiting[0].result()
    waiting[2].result()
    found = [_has(database, name) for name in ("before", "lost", "after")]
    assert found == [True, False, True]


def test_later_works_see_earlier_ones(database: Database) -> None:
    """To each it is as if they had come one after the other: the second insert is refused."""
    with _lined_up(database, [_insert("same"), _insert("same"), _insert("other")]) as waiting:
        pass
    waiting[0].result()
    waiting[2].result()
    assert waiting[1].exception() is not None
    assert _has(database, "same")
    assert _has(database, "other")


def test_a_disturbed_work_is_tried_again(database: Database) -> None:
    """What asks to be tried again is, without its neighbours."""
    tries: list[int] = []

    def twice(transaction: Transaction) -> None:
        tries.append(1)
        _insert("twice")(transaction)
        if len(tries) == 1:
            raise Disturbed("once")

    with _lined_up(database, [_insert("before"), twice, _insert("after")]) as waiting:
        pass
    for future in waiting:
        future.result()
    assert len(tries) == 2
    assert all(_has(database, name) for name in ("before", "twice", "after"))


def test_a_full_disk_hits_the_one_that_does_not_fit(tmp_path: Path) -> None:
    """When a shared transaction fails as a whole each of its works is tried by itself."""
    url = f"sqlite:///{tmp_path / 'small.db'}"
    first = Database.open(url)
    migrate(first)
    first.close()
    database = Database.open(url)

    @event.listens_for(database.engine, "connect")
    def limit(connection: Any, _record: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages + 8}")

    tries: list[int] = []

    def fails_once(transaction: Transaction) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise NotFound("not in company")
        _insert("patient")(transaction)

    works = [_insert("small"), fails_once, _insert("huge" * 50_000), _insert("little")]
    with _lined_up(database, works) as waiting:
        pass
    assert isinstance(waiting.pop(2).exception(), ResourceExhausted)
    for future in waiting:
        future.result()
    assert all(_has(database, name) for name in ("small", "patient", "little"))
    database.close()


def test_an_interrupted_writer_leaves_the_line(database: Database) -> None:
    """Whoever is interrupted while waiting is not run, and those behind it are."""
    waiter = threading.get_ident()
    with ThreadPoolExecutor(2) as pool, _led(database) as go_on:

        def behind() -> None:
            _until(lambda: len(_line(database)._waiting) == 1)
            late = pool.submit(database.write, _insert("behind"))
            _until(lambda: len(_line(database)._waiting) == 2)
            signal.pthread_kill(waiter, signal.SIGINT)
            _until(lambda: len(_line(database)._waiting) == 1)
            go_on()
            late.result(30)

        watching = pool.submit(behind)
        with pytest.raises(KeyboardInterrupt):
            database.write(_insert("interrupted"))
        watching.result(30)
    assert _has(database, "behind")
    assert not _has(database, "interrupted")


def test_an_interrupted_leader_lets_the_others_go_on(database: Database) -> None:
    """Works of others in an interrupted commit are tried again; the leader's own is gone."""
    stopped: list[int] = []

    def stopping(transaction: Transaction) -> None:
        if not stopped:
            stopped.append(1)
            raise KeyboardInterrupt
        _insert("stopping")(transaction)

    works = [_insert("leading"), stopping, _insert("last")]
    with _lined_up(database, works) as waiting:
        pass
    assert isinstance(waiting[0].exception(), KeyboardInterrupt)
    waiting[1].result()
    waiting[2].result()
    assert [_has(database, name) for name in ("leading", "stopping", "last")] == [
        False,
        True,
        True,
    ]
