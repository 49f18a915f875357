"""Writers on SQLite share commits, and none of them notices."""

from __future__ import annotations

import inspect
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from sqlalchemy import event

from calque.errors import NotFound, ResourceExhausted
from calque.store.metabase.accounts.buckets import BUCKET_EXISTS
from calque.store.metabase.accounts.create_bucket import (
    INSERT_BUCKET,
    CreateBucket,
    create_bucket,
)
from calque.store.metabase.engine import group_commit as shared_commits
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.errors import Disturbed
from calque.store.metabase.engine.group_commit import MAX_SHARED, PAUSE_SECONDS, SharedCommits
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.engine.transaction import Transaction

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
    return bool(database.read_rows(BUCKET_EXISTS, {"project_id": PROJECT, "bucket": name}))


def _line(database: Database) -> SharedCommits:
    assert database._shared is not None
    return database._shared


def _waiting(database: Database) -> int:
    """How many stand behind the leader."""
    return len(_line(database)._queue) - 1


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
            _until(lambda number=number: _waiting(database) == number)  # type: ignore[misc]
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
            _until(lambda: _waiting(database) == 1)
            late = pool.submit(database.write, _insert("behind"))
            _until(lambda: _waiting(database) == 2)
            signal.pthread_kill(waiter, signal.SIGINT)
            _until(lambda: _waiting(database) == 1)
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


class _Interruption:
    """Ctrl-C in this thread, at the n-th line that it executes in the module of the line."""

    def __init__(self, at: int) -> None:
        self._left = at
        self._file = shared_commits.__file__
        self._text = inspect.getsource(shared_commits).splitlines()

    @property
    def came(self) -> bool:
        return self._left <= 0

    def __enter__(self) -> _Interruption:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != self._file:
            return None
        # Python lets no signal in between a block and the release of its lock.
        if event == "line" and "with " not in self._text[frame.f_lineno - 1]:
            self._left -= 1
            if self._left == 0:
                raise KeyboardInterrupt
        return self._trace


def _interrupted(database: Database, at: int, work: Work) -> bool:
    """Write, interrupted at one line; False when there are not so many lines."""
    interruption = _Interruption(at)
    try:
        with interruption:
            database.write(work)
    except KeyboardInterrupt:
        assert interruption.came
    return interruption.came


def test_a_leader_interrupted_anywhere_stops_nobody(database: Database) -> None:
    """Whatever line Ctrl-C strikes, those who wait behind and those who come later go on."""
    at = 0
    came = True
    with ThreadPoolExecutor(3) as pool:
        while came:
            at += 1
            behind: list[Future[Any]] = []

            def leading(_: Transaction, at: int = at, behind: list[Future[Any]] = behind) -> None:
                if not behind:
                    behind.append(pool.submit(database.write, _insert(f"behind{at}")))
                    behind.append(pool.submit(database.write, _insert(f"also{at}")))
                    _until(lambda: _waiting(database) == 2)

            came = _interrupted(database, at, leading)
            behind.append(pool.submit(database.write, _insert(f"after{at}")))
            for each in behind:
                each.result(30)
            assert not _line(database)._queue
    assert at > 20


def test_a_waiter_interrupted_anywhere_stops_nobody(database: Database) -> None:
    """Nor does one that waits, or that was just made to lead; others are answered once."""
    at = 0
    came = True
    with ThreadPoolExecutor(3) as pool:
        while came:
            at += 1
            done = threading.Event()
            with _led(database) as go_on:

                def others(
                    at: int = at, go_on: Callable[[], None] = go_on, done: threading.Event = done
                ) -> Future[Any]:
                    _until(lambda: _waiting(database) == 1 or done.is_set())
                    late = pool.submit(database.write, _insert(f"late{at}"))
                    _until(lambda: _waiting(database) == 2 or done.is_set())
                    go_on()
                    return late

                coming = pool.submit(others)
                came = _interrupted(database, at, _insert(f"waiter{at}"))
                done.set()
            coming.result(30).result(30)
            pool.submit(database.write, _insert(f"after{at}")).result(30)
            assert not _line(database)._queue
    assert at > 15


def test_an_interrupt_during_the_commit_repeats_nothing(tmp_path: Path) -> None:
    """Ctrl-C is seen when the disk has answered: what is committed is not done again."""
    opened = Database.open(f"sqlite:///{tmp_path / 'meta.db'}")
    migrate(opened)
    strikes = [False]

    @contextmanager
    def connect() -> Iterator[Any]:
        with opened._connection() as connection:
            yield _Struck(connection, strikes)

    opened._shared = SharedCommits(connect, opened.clock)
    with _lined_up(opened, [_insert("leading"), _insert("other")]) as waiting:
        strikes[0] = True
    assert isinstance(waiting[0].exception(), KeyboardInterrupt)
    waiting[1].result()
    assert _has(opened, "leading")
    assert _has(opened, "other")
    opened.close()


class _Struck:
    """A connection whose commit is followed by Ctrl-C, when more than one shares it."""

    def __init__(self, connection: Any, strikes: list[bool]) -> None:
        self._connection = connection
        self._strikes = strikes
        self._shared = False

    @property
    def in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def execute(self, text: str, *parameters: Any) -> Any:
        self._shared = self._shared or text.startswith("SAVEPOINT")
        return self._connection.execute(text, *parameters)

    def commit(self) -> None:
        self._connection.commit()
        if self._shared and self._strikes[0]:
            self._strikes[0] = False
            raise KeyboardInterrupt


def test_other_processes_come_in_between_batches(tmp_path: Path) -> None:
    """Who writes batch after batch does not keep the file to itself until the end."""
    file = tmp_path / "meta.db"
    databases = [Database.open(f"sqlite:///{file}") for _ in range(3)]
    migrate(databases[0])
    has_begun = threading.Event()
    others: list[Future[Any]] = []

    def write_batches() -> list[bool]:
        connection = sqlite3.connect(file, isolation_level=None)
        for _ in range(1000):
            if len(others) == 3 and all(other.done() for other in others):
                break
            connection.execute("BEGIN IMMEDIATE")
            has_begun.set()
            time.sleep(0.06)
            connection.execute("COMMIT")
            time.sleep(PAUSE_SECONDS)
        connection.close()
        return [other.done() for other in others]

    with ThreadPoolExecutor(4) as pool:
        batches = pool.submit(write_batches)
        has_begun.wait()
        for database in databases:
            name = f"bucket-{len(others)}"
            others.append(pool.submit(create_bucket, database, CreateBucket(PROJECT, name)))
        assert batches.result() == [True] * 3
        assert [other.result().name for other in others] == ["bucket-0", "bucket-1", "bucket-2"]
    for database in databases:
        database.close()
