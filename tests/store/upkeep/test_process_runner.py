"""The scan in a process beside this one: the same results, and clear errors when it dies."""

from __future__ import annotations

import pytest

from calque.errors import IntegrityError, Unavailable
from calque.store.nodes.bloom import BloomShape
from calque.store.upkeep import engines
from calque.store.upkeep.engines import ScanOptions, open_scan
from calque.store.upkeep.gc import collect_store
from calque.store.upkeep.piece_filters import PieceFilters
from calque.store.upkeep.scan import LocalRunner, run_scan
from tests.store.upkeep.kept_store import KeptStore
from tests.store.upkeep.observed import found, observers

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
