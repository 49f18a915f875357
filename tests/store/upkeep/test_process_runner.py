"""The scan in a process beside this one: the same results, and clear errors when it dies."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import signal
from pathlib import Path

import pytest

from calque import faults
from calque.errors import CalqueError, IntegrityError, Unavailable
from calque.store.embedded import EmbeddedStore
from calque.store.nodes.bloom import BloomShape
from calque.store.upkeep import engines
from calque.store.upkeep.engines import ScanOptions, open_scan
from calque.store.upkeep.gc import GcOptions, collect_store
from calque.store.upkeep.piece_filters import PieceFilters
from calque.store.upkeep.process_runner import _receive
from calque.store.upkeep.scan import LocalRunner, RangeResult, run_scan
from tests.children import children_running
from tests.forks import FORKS
from tests.operator.services.fs.conftest import finish, own_mounts, start
from tests.store.upkeep.kept_store import KeptStore
from tests.store.upkeep.observed import found, observers

__all__ = ["own_mounts"]

BESIDE = ScanOptions(engine="process", range_rows=4)


def test_it_gives_the_same(kept: KeptStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """On each database, from one snapshot; and a store of some size takes it by itself."""
    for number in range(4):
        kept.upload(f"o{number}")
        kept.copy(f"o{number}", f"c{number}")
    with open_scan(kept.store.endpoint.database, BESIDE) as (snapshot, runner):
        ranges = snapshot.cut(rows_each=4)
        here, there = observers(kept), observers(kept)
        run_scan(snapshot, here, runner=LocalRunner(), ranges=ranges)
        kept.upload("late")
        assert run_scan(snapshot, there, runner=runner, ranges=ranges).engine == "process"
    assert found(here) == found(there)
    monkeypatch.setattr(engines, "PROCESS_FROM", 10)
    assert collect_store(kept.store).scan.engine == "process"
    kept.check()


def test_its_errors_arrive(plain: KeptStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong in it is told here, and its death is no result."""
    plain.upload("a")
    database = plain.store.endpoint.database
    nobody = PieceFilters({99: b"n" * 32}, {99: BloomShape.of(1, 1)})
    with open_scan(database, BESIDE) as (snapshot, runner):
        with pytest.raises(IntegrityError, match="alias"):
            run_scan(snapshot, [nobody], runner=runner)
        monkeypatch.setenv("CALQUE_FAULT", "scan.range:kill")
        with pytest.raises(Unavailable, match="has ended"):
            run_scan(snapshot, observers(plain), runner=runner)


def test_a_snapshot_that_cannot_be_opened_is_told(plain: KeptStore) -> None:
    """By what is wrong with it, and not as the death of a process."""
    plain.upload("a")
    with open_scan(plain.store.endpoint.database, BESIDE) as (snapshot, runner):
        shutil.rmtree(_copies(plain)[0])
        with pytest.raises(CalqueError) as raised:
            run_scan(snapshot, observers(plain), runner=runner)
    assert "has ended" not in str(raised.value)


def test_an_answer_cut_short_is_none() -> None:
    """Wherever the process was killed while it wrote a result: nobody takes it for one."""
    answer = RangeResult(3, 40, ({1: bytearray(os.urandom(70_000))}, {2: 5}))
    data = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    assert _receive(io.BytesIO(data)) == answer
    for length in (*range(200), 30_000, 65_536, *range(len(data) - 200, len(data))):
        with pytest.raises(Unavailable, match="has ended"):
            _receive(io.BytesIO(data[:length]))


def test_one_killed_midway_finishes_nothing(plain: KeptStore) -> None:
    """Killed between two ranges: the run fails, and what was found so far is no filter."""
    for number in range(6):
        plain.upload(f"o{number}")
    database = plain.store.endpoint.database
    before = plain.pieces()

    def kill(rows: int, total: int) -> None:
        (worker,) = children_running("range_worker")
        worker.send_signal(signal.SIGKILL)
        worker.wait(60)

    with (
        open_scan(database, BESIDE) as (snapshot, runner),
        pytest.raises(Unavailable, match="has ended"),
    ):
        run_scan(snapshot, observers(plain), runner=runner, ranges=snapshot.cut(rows_each=4),
                 tell=kill)  # fmt: skip
    with pytest.raises(Unavailable, match="has ended"):
        collect_store(plain.store, GcOptions(scan=BESIDE), tell=kill)
    assert plain.pieces() == before
    assert _copies(plain) == []
    assert collect_store(plain.store, GcOptions(scan=BESIDE)).scan.engine == "process"


def _copies(kept: KeptStore) -> list[Path]:
    return sorted(kept.store.folder.rglob(".scan-*"))


def _scan_until_killed(folder: str) -> None:
    """In another process."""
    faults.arm("scan.counted:kill")
    store = EmbeddedStore.open(folder)
    collect_store(store, GcOptions(scan=BESIDE))


def test_copies_of_killed_scans_go(plain: KeptStore) -> None:
    """What tasks read of a SQLite store is as large as it: the next scan takes away what a killed
    one left, and never what another is reading."""
    plain.upload("a")
    child = FORKS.Process(target=_scan_until_killed, args=(str(plain.store.folder),))
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    (left,) = _copies(plain)
    database = plain.store.endpoint.database
    with open_scan(database, BESIDE) as (first, runner):
        (held,) = _copies(plain)
        assert held != left
        plain.upload("b")
        with open_scan(database, BESIDE) as (second, beside):
            assert held in _copies(plain)
            assert second.rows > first.rows
            here, there = observers(plain), observers(plain)
            run_scan(second, there, runner=beside, ranges=second.cut(rows_each=2))
            run_scan(second, here, runner=LocalRunner())
            assert found(here)[0] == found(there)[0]
        assert _copies(plain) == [held]
        assert run_scan(first, observers(plain), runner=runner).rows == first.rows
    assert _copies(plain) == []


NO_ROOM = """
import subprocess, sys
from pathlib import Path
folder = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(folder)], check=True)
from calque.errors import ResourceExhausted
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.upkeep.engines import ScanOptions, open_scan
from tests.store.world import Clock, World
clock = Clock()
database = Database.open(f"sqlite:///{folder}/meta.db", clock=clock)
migrate(database)
World(database, clock).upload("key")
(folder / "other").write_bytes(bytes(1))
try:
    with open(folder / "other", "ab", 0) as other:
        while True:
            other.write(bytes(4096))
except OSError:
    pass
try:
    with open_scan(database, ScanOptions(engine="process")):
        print("scanned")
except ResourceExhausted as error:
    print("refused", sorted(each.name for each in folder.glob(".scan*")))
(folder / "other").unlink()
with open_scan(database, ScanOptions(engine="process")) as (snapshot, _):
    print(snapshot.rows)
"""


def test_a_full_disk_refuses_the_copy(tmp_path: Path, own_mounts: tuple[str, ...]) -> None:
    """Nothing is left of it, and with room again the scan runs."""
    out = finish(start(NO_ROOM, tmp_path, prefix=own_mounts))
    assert out.splitlines() == ["refused []", "1"]
