"""A backup taken under writes restores whole: every object as it was at one moment."""

from __future__ import annotations

import gc
import json
import os
import stat
import subprocess
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select

from calque.errors import AlreadyExists, FailedPrecondition, InvalidInput, NotFound
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.model.schema import segments
from calque.store.metabase.objects import hold_pieces as holds
from calque.store.metabase.objects.hold_pieces import hold_pieces
from calque.store.open_project import open_project
from calque.store.upkeep.backup import copy_store
from calque.store.upkeep.expire import sweep_store
from calque.store.upkeep.fsck import check_store
from tests.command import run_command_text
from tests.servers.postgres import PostgresServer
from tests.store_client.conftest import TWO_OF_FOUR
from tests.store_client.world import BUCKET, OTHER, SEGMENT, SMALL, World


@contextmanager
def busy(world: World) -> Iterator[Callable[[], int]]:
    """Threads that write, copy, move, overwrite and delete for the length of the block."""
    over, failures, rounds = threading.Event(), [], [0]

    def work(name: str) -> None:
        try:
            number = 0
            while not over.is_set():
                number += 1
                key = f"{name}/{number % 7}"
                world.project.upload(BUCKET, key, name.encode() * (SEGMENT // 2) + os.urandom(700))
                world.project.copy_object(BUCKET, key, OTHER, key)
                world.project.delete_object(BUCKET, key)
                if number % 3 == 0:
                    world.project.move_object(OTHER, key, OTHER, f"{key}-moved")
                rounds[0] += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    try:
        yield lambda: rounds[0]
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert failures == []


def contents(folder: Path) -> dict[tuple[str, str], bytes]:
    """Every object of a store, read whole; the store must be whole too."""
    store = EmbeddedStore.open(folder)
    assert check_store(store, young=True) == []
    store.close()
    with open_project(folder, settings=SMALL) as project:
        return {
            (bucket.name, entry.key): project.download(bucket.name, entry.key).read()
            for bucket in project.list_buckets()
            for entry in project.list_objects(bucket.name)
        }


def test_a_backup_under_writes_is_whole(
    any_database: str | None, make_world: Callable[..., World], tmp_path: Path
) -> None:
    """Whatever is deleted meanwhile, every object of the snapshot can be read from the backup."""
    world = make_world(TWO_OF_FOUR, any_database)
    still = {f"still/{n}": os.urandom(n * 700) for n in range(6)}
    for key, content in still.items():
        world.project.upload(BUCKET, key, content)
    with busy(world) as rounds:
        while rounds() < 5:
            threading.Event().wait(0.01)
        report = copy_store(world.store, tmp_path / "backup")
    assert (report.missing_pieces, report.lost_segments) == (0, 0)
    found = contents(tmp_path / "backup")
    for key, content in still.items():
        assert found[BUCKET, key] == content
    assert all(data[:1] == key[:1].encode() for (_, key), data in found.items() if key[1] == "/")
    # The store itself goes on, and what was held back is deleted.
    while (
        world.store.endpoint.list_waiting_pieces()
    ):  # an answer about holds is believed for a second
        sweep_store(world.store)


def test_there_and_back(
    any_database: str | None,
    make_world: Callable[..., World],
    postgres: PostgresServer,
    tmp_path: Path,
) -> None:
    """A store, its backup and what is restored from it hold the same; also in PostgreSQL."""
    world = make_world(TWO_OF_FOUR, any_database)
    project = world.project
    project.upload(BUCKET, "ü/large", os.urandom(5 * SEGMENT), metadata={"k": "v"})
    project.upload(BUCKET, "empty", b"")
    project.upload(OTHER, "later", os.urandom(SEGMENT), expires=world.clock.now() + timedelta(5))
    project.copy_object(BUCKET, "ü/large", OTHER, "copy")
    project.delete_object(BUCKET, "ü/large")
    pending = project.begin_multipart(BUCKET, "parts")
    pending.upload_part(1, os.urandom(SEGMENT))
    copy_store(world.store, tmp_path / "backup")
    url = postgres.database()
    with opened_store(tmp_path / "backup") as saved:
        copy_store(saved, tmp_path / "plain")
        copy_store(
            saved, tmp_path / "far", database=url, nodes=[str(tmp_path / f"d{n}") for n in range(4)]
        )
    expected = contents(tmp_path / "backup")
    assert set(expected) == {(BUCKET, "empty"), (OTHER, "later"), (OTHER, "copy")}
    for restored in ("plain", "far"):
        assert contents(tmp_path / restored) == expected
        with open_project(tmp_path / restored, settings=SMALL) as opened:
            # An upload that was pending goes on, with the id that was given out before.
            resumed = opened.resume_multipart(BUCKET, "parts", pending.id)
            resumed.upload_part(2, b"more" * SEGMENT)
            resumed.commit()
            assert opened.download(BUCKET, "parts").read().endswith(b"more")
            assert opened.stat(OTHER, "later").expires == project.stat(OTHER, "later").expires
    postgres.drop(url)


@contextmanager
def opened_store(folder: Path) -> Iterator[EmbeddedStore]:
    store = EmbeddedStore.open(folder)
    try:
        yield store
    finally:
        store.close()


def test_limits_are_kept(make_world: Callable[..., World], tmp_path: Path) -> None:
    """What a project may hold and what it holds are the same in the copy."""
    world = make_world()
    world.project.upload(BUCKET, "k", os.urandom(SEGMENT))
    admin = world.store.endpoint.admin
    project_id = world.project.session.limits.project_id
    admin.set_limits(project_id, limit_bytes=2 * SEGMENT, limit_segments=None)
    copy_store(world.store, tmp_path / "b")
    with open_project(tmp_path / "b", settings=SMALL) as copy:
        with pytest.raises(Exception, match="may hold"):
            copy.upload(BUCKET, "more", os.urandom(2 * SEGMENT))
        copy.delete_object(BUCKET, "k")
        copy.upload(BUCKET, "more", os.urandom(SEGMENT))


def test_pieces_stay_while_a_hold_lasts(plain_world: World) -> None:
    """Deletes stand at once, their pieces go when the hold has ended or run out."""
    world = plain_world
    world.project.upload(BUCKET, "k", os.urandom(SEGMENT))
    world.project.upload(BUCKET, "soon", os.urandom(SEGMENT),
                         expires=world.clock.now() + timedelta(minutes=1))  # fmt: skip
    with hold_pieces(world.store.endpoint.database):
        world.project.delete_object(BUCKET, "k")
        sweep_store(world.store)
        assert world.keys() == ["soon"]
        assert world.piece_count() == 2
        with pytest.raises(FailedPrecondition, match="another backup"):
            hold_pieces(world.store.endpoint.database).__enter__()
        # Killed, it would never end by itself.
        world.clock.ahead += timedelta(microseconds=holds.LEASE_US + 1)
        threading.Event().wait(holds.BELIEVED_S * 1.1)
        sweep_store(world.store)
        assert world.piece_count() == 0


def test_a_hold_that_ran_out_is_not_put_off(plain_world: World) -> None:
    """Pieces may have gone meanwhile, so the backup fails rather than miss some of them."""
    with hold_pieces(plain_world.store.endpoint.database) as hold:
        hold._refreshed = 0.0
        hold.refresh()
        plain_world.clock.ahead += timedelta(microseconds=holds.LEASE_US + 1)
        hold._refreshed = 0.0
        with pytest.raises(FailedPrecondition, match="paused too long"):
            hold.refresh()


def test_a_few_rows_are_in_memory(make_world: Callable[..., World], tmp_path: Path) -> None:
    """A backup of more than twice the segments takes no more memory, missing pieces or not."""
    world = make_world()
    content = os.urandom(SEGMENT)
    world.project.upload(BUCKET, "k", content)
    with world.store.endpoint.database.engine.begin() as connection:
        (row,) = connection.execute(select(segments)).mappings().all()
    peaks, made = [], 0
    told: list[tuple[int, int]] = []
    for more in (1100, 2800):
        rows = [
            {**row, "stream_id": os.urandom(16), "root_piece_id": os.urandom(32)}
            for _ in range(more)
        ]
        with world.store.endpoint.database.engine.begin() as connection:
            connection.execute(insert(segments), rows)
        del rows
        made += more
        # Among millions of objects of other tests, garbage in cycles is looked for too seldom.
        gc.collect()
        gc.freeze()
        tracemalloc.start()
        report = copy_store(world.store, tmp_path / f"{made}", tell=lambda *n: told.append(n))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (report.segments, report.missing_pieces) == (made + 1, made)
        assert told[-1] == (made + 1, made + 1)
    with world.store.endpoint.database.engine.begin() as connection:
        connection.execute(delete(segments).where(segments.c.stream_id != row["stream_id"]))
    # 2,800 more of them in memory would be some 6 million bytes; other threads allocate too.
    assert peaks[1] < peaks[0] + 3_000_000


def test_what_is_missing_is_said(make_world: Callable[..., World], tmp_path: Path) -> None:
    """A node that is away is survived and counted; too many make the backup say what is lost."""
    world = make_world(TWO_OF_FOUR)
    content = os.urandom(2 * SEGMENT)
    world.project.upload(BUCKET, "k", content)
    nodes = world.store.folder / "nodes"
    (nodes / "0").rename(nodes / "away")
    report = copy_store(world.store, tmp_path / "one")
    assert (report.missing_pieces > 0, report.lost_segments) == (True, 0)
    with open_project(tmp_path / "one", settings=SMALL) as saved:
        assert saved.download(BUCKET, "k").read() == content
    for number in (1, 2, 3):
        (nodes / f"{number}").rename(nodes / f"away{number}")
    assert copy_store(world.store, tmp_path / "none").lost_segments == report.segments
    (nodes / "away").rename(nodes / "0")
    for number in (1, 2, 3):
        (nodes / f"away{number}").rename(nodes / f"{number}")


def test_nothing_is_written_over(plain_world: World, tmp_path: Path) -> None:
    """A folder with something in it, another store's roots, too few roots: refused."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(AlreadyExists, match="not empty"):
        copy_store(plain_world.store, tmp_path / "full")
    with pytest.raises(InvalidInput, match="1 nodes, 2 roots"):
        copy_store(plain_world.store, tmp_path / "b", nodes=["x", "y"])
    EmbeddedStore.create(tmp_path / "other").close()
    with pytest.raises(AlreadyExists, match="another store"):
        copy_store(plain_world.store, tmp_path / "b", nodes=[str(tmp_path / "other/nodes/0")])
    assert not EmbeddedStore.exists(tmp_path / "b")


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command_text("store", *arguments)


def test_the_commands(tmp_path: Path) -> None:
    """Backup and restore as a user calls them; secrets stay their owner's."""
    with open_project(tmp_path / "data") as project:
        project.create_bucket(BUCKET)
        project.upload(BUCKET, "k", b"x" * 9000)
    answer = cli("backup", str(tmp_path / "b"), "--project", str(tmp_path / "data"), "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {
        "segments": 1, "pieces": 1, "missing_pieces": 0, "lost_segments": 0,
    }  # fmt: skip
    for name in ("meta.db", "access.json", "store.json"):
        assert stat.S_IMODE((tmp_path / "b" / name).stat().st_mode) == 0o600
    answer = cli("restore", str(tmp_path / "b"), "--project", str(tmp_path / "again"))
    assert answer.returncode == 0, answer.stderr
    with open_project(tmp_path / "again") as project:
        assert project.download(BUCKET, "k").read() == b"x" * 9000
    answer = cli("restore", str(tmp_path / "b"), "--project", str(tmp_path / "again"))
    assert answer.returncode != 0
    assert "not empty" in answer.stderr
    answer = cli("restore", str(tmp_path / "nothing"), "--project", str(tmp_path / "c"))
    assert "no store" in answer.stderr
    with pytest.raises(NotFound):
        EmbeddedStore.open(tmp_path / "c")
