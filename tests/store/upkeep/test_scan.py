"""One scan, many observers: one snapshot, every row once, or nothing at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from calque.errors import Aborted, IntegrityError, Unavailable
from calque.store.metabase.engine.database import Database
from calque.store.metabase.scan import Range, Reader, Snapshot, open_snapshot
from calque.store.metabase.scan import snapshot as snapshots
from calque.store.upkeep.scan import (
    Batch,
    LocalRunner,
    RangeResult,
    ScanJob,
    run_scan,
    scan_range,
)
from tests.store.world import THREE_REMOTE, WITH_TAIL, World


@dataclass
class Seen:
    """An observer that remembers everything."""

    columns: tuple[str, ...] = ("stream_id", "position", "root_piece_id", "is_inline")
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def counted(self) -> Counter[tuple[Any, ...]]:
        return Counter((*row[:3], bool(row[3])) for row in self.rows)

    def start(self, snapshot: Snapshot) -> None:
        self.steps.append("start")

    def fork(self) -> Seen:
        return Seen(self.columns)

    def process(self, batch: Batch) -> None:
        self.rows += zip(*(batch[name] for name in self.columns), strict=True)

    def result(self) -> list[tuple[Any, ...]]:
        return self.rows

    def join(self, result: list[tuple[Any, ...]]) -> None:
        self.steps.append("join")
        self.rows += result

    def finish(self) -> None:
        self.steps.append("finish")


@pytest.fixture
def filled(world: World) -> World:
    """Some tens of segments, remote and inline, and copies."""
    for number in range(10):
        world.upload(f"o{number}", THREE_REMOTE)
        world.upload(f"t{number}", WITH_TAIL)
        world.copy(world.at(f"o{number}"), world.at(f"c{number}"))
    return world


def expected(world: World) -> Counter[tuple[Any, ...]]:
    return Counter((row[0], row[1], row[5], row[13] is not None) for row in world.table("segments"))


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_every_row_is_seen_once(filled: World, rows: int) -> None:
    """Whatever the size of ranges; an observer is asked in the order of its five steps."""
    seen = Seen()
    with open_snapshot(filled.database) as snapshot:
        ranges = snapshot.cut(rows_each=rows)
        report = run_scan(snapshot, [seen], ranges=ranges)
    assert seen.counted() == expected(filled)
    assert report.rows == len(seen.rows) == 80
    assert (report.ranges, report.engine) == (len(ranges), "local")
    assert (report.snapshot, report.taken_at) == (snapshot.name, snapshot.taken_at)
    assert report.seconds >= 0
    assert seen.steps == ["start", *["join"] * len(ranges), "finish"]


def test_an_empty_store_is_scanned(world: World) -> None:
    """No segment at all is no error."""
    seen = Seen()
    with open_snapshot(world.database) as snapshot:
        assert run_scan(snapshot, [seen, Seen(())]).rows == 0
    assert seen.steps[-1] == "finish"


class Interrupted(LocalRunner):
    """Does something to the store after the first range."""

    def __init__(self, act: Any) -> None:
        self.act = act

    def run(
        self, snapshot: Snapshot, job: ScanJob, ranges: Sequence[Range]
    ) -> Iterator[RangeResult]:
        for number, found in enumerate(super().run(snapshot, job, ranges)):
            if number == 0:
                self.act()
            yield found


def test_the_snapshot_is_of_one_moment(filled: World) -> None:
    """Uploads, copies, deletes and promotions since change nothing of what is seen, whether they
    come while it is read or before anybody has begun to."""
    before = expected(filled)

    def change() -> None:
        filled.upload("new", THREE_REMOTE)
        filled.delete(filled.at("o1"))  # its copy is promoted
        filled.copy(filled.at("o2"), filled.at("late"))
        filled.delete(filled.at("t3"))

    seen = Seen()
    with open_snapshot(filled.database) as snapshot:
        filled.upload("sooner", THREE_REMOTE)
        filled.delete(filled.at("o5"))
        run_scan(snapshot, [seen], runner=Interrupted(change), ranges=snapshot.cut(rows_each=5))
    assert seen.counted() == before


def test_what_is_older_than_its_time_is_in_a_snapshot(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is that before it was taken: pieces that came since are younger, and stay."""
    keeper, before = snapshots._keeper, filled.clock()

    @contextmanager
    def take_long(*asked: Any) -> Iterator[Any]:
        with keeper(*asked) as taken:
            filled.clock.advance(10**9)
            yield taken

    monkeypatch.setattr(snapshots, "_keeper", take_long)
    with open_snapshot(filled.database) as snapshot:
        assert before < snapshot.taken_at < before + 10**9


def test_a_range_that_comes_twice_counts_once(filled: World) -> None:
    """Retried tasks and speculative twins change nothing."""

    class Twice(LocalRunner):
        def run(
            self, snapshot: Snapshot, job: ScanJob, ranges: Sequence[Range]
        ) -> Iterator[RangeResult]:
            for found in super().run(snapshot, job, ranges):
                yield found
                yield found

    seen = Seen()
    with open_snapshot(filled.database) as snapshot:
        run_scan(snapshot, [seen], runner=Twice(), ranges=snapshot.cut(rows_each=7))
    assert seen.counted() == expected(filled)


class Forgetful(LocalRunner):
    """Loses a row of each range, or a whole range."""

    def __init__(self, ranges: bool) -> None:
        self.ranges = ranges

    def run(
        self, snapshot: Snapshot, job: ScanJob, ranges: Sequence[Range]
    ) -> Iterator[RangeResult]:
        with snapshot.reader() as reader:
            for each in ranges[1:] if self.ranges else ranges:
                yield scan_range(_Dropping(reader, not self.ranges), job, each)


@dataclass
class _Dropping:
    reader: Reader
    drop: bool

    def read(self, range: Range, columns: Sequence[str]) -> Iterator[list[Any]]:
        for rows in self.reader.read(range, columns):
            if kept := rows[1:] if self.drop else rows:  # a reader gives no batch without rows
                yield kept

    def close(self) -> None:
        self.reader.close()


@pytest.mark.parametrize("whole", [True, False])
def test_a_missing_row_fails_the_run(filled: World, whole: bool) -> None:
    """Not three in a hundred but none may be missing; then no observer is finished."""
    seen = Seen()
    with open_snapshot(filled.database) as snapshot:
        ranges = snapshot.cut(rows_each=7)
        with pytest.raises(IntegrityError, match="80"):
            run_scan(snapshot, [seen], runner=Forgetful(whole), ranges=ranges)
    assert "finish" not in seen.steps


def test_one_that_is_stopped_finishes_nothing(filled: World) -> None:
    """A server that goes down does not read on to the end of a large table."""
    seen, told = Seen(), list[int]()
    with open_snapshot(filled.database) as snapshot, pytest.raises(Aborted, match="stopped"):
        run_scan(
            snapshot,
            [seen],
            ranges=snapshot.cut(rows_each=5),
            tell=lambda rows, _: told.append(rows),
            over=lambda: len(told) == 2,
        )
    assert len(told) == 2
    assert "finish" not in seen.steps


def test_a_lost_keeper_fails_the_run(database: Database, world: World) -> None:
    """Without its snapshot nobody knows what was read, even if every row came."""
    world.upload("a", THREE_REMOTE)
    seen = Seen()
    with open_snapshot(database) as snapshot:
        lose: Any = snapshot._keeper.close
        if database.dialect == "postgresql":
            pid = snapshot.query("SELECT pg_backend_pid()")[0][0]

            def lose() -> None:
                with database.engine.connect() as connection:
                    connection.execute(text(f"SELECT pg_terminate_backend({pid})"))

        with pytest.raises(Unavailable, match="snapshot was lost"):
            run_scan(snapshot, [seen], runner=Interrupted(lose))
    assert "finish" not in seen.steps


def test_nobody_moves_rows_while_they_are_read(filled: World) -> None:
    """PostgreSQL: a rewrite of the table would put rows on pages that were read already."""
    if filled.database.dialect != "postgresql":
        pytest.skip("SQLite reads by key")
    rewrite = "LOCK TABLE segments IN ACCESS EXCLUSIVE MODE"
    with filled.database.engine.connect() as other:
        with open_snapshot(filled.database), pytest.raises(OperationalError, match="lock"):
            other.execute(text(f"{rewrite} NOWAIT"))
        other.rollback()
        other.execute(text(rewrite))  # as soon as the server has noticed that the keeper is gone


CURSORS = "SELECT statement FROM pg_cursors WHERE name LIKE 'scan_%'"


def test_ranges_are_read_by_pages(filled: World) -> None:
    """PostgreSQL: page after page, and neither by an index nor through the whole table."""
    if filled.database.dialect != "postgresql":
        pytest.skip("SQLite reads by key")
    plans = []
    with filled.database.engine.begin() as other:  # statistics of a table that was all but empty
        other.execute(
            text("UPDATE pg_class SET reltuples = 1, relpages = 1 WHERE relname = 'segments'")
        )
    with open_snapshot(filled.database) as snapshot, snapshot.reader() as reader:
        asked: Any = reader
        for each in snapshot.cut(rows_each=20):
            for _ in reader.read(each, ("position",)):
                ((said,),) = asked.connection.execute(CURSORS).fetchall()
                query = said[said.index("SELECT") :]
                plans += asked.connection.execute(f"EXPLAIN {query}").fetchone()
    assert plans
    assert {plan.partition("  ")[0] for plan in plans} == {"Tid Range Scan on segments"}
