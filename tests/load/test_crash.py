"""The crash matrix: every step, killed, failed or frozen, alone or beside another loader."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from calque.load.protocol import STEPS
from tests.load.loader import LEASE, Place, ended, run, start
from tests.load.world import assert_settled, write_files

KINDS = ("delta", "iceberg")
FREEZE = 2.5 * LEASE
FILES = 3


def _place(folder: Path, kind: str) -> tuple[Place, list[int]]:
    folder.mkdir(parents=True)
    place = Place(folder, kind, str(folder / "ledger.db"))
    return place, write_files(place.stage, FILES)


def _alone(folder: Path, kind: str, step: str, action: str) -> tuple[Place, list[int], int]:
    """The victim stops at the step; the same statement is run again afterwards."""
    place, expected = _place(folder, kind)
    code = run(place, "victim", f"{step}:{action}", purge=True)
    assert run(place, "again", purge=True) == 0
    return place, expected, code


def _beside(folder: Path, kind: str, step: str, action: str) -> tuple[Place, list[int], int]:
    """Another loader starts with the victim and a third comes after both."""
    place, expected = _place(folder, kind)
    victim = start(place, "victim", f"{step}:{action}", purge=True)
    other = start(place, "other", purge=True)
    victim.join(60)
    assert ended(place, "other", other) == 0
    assert run(place, "again", purge=True) == 0
    return place, expected, victim.exitcode


def _overtaken(folder: Path, kind: str, step: str) -> tuple[Place, list[int], int]:
    """The victim freezes beyond its lease; another takes over; then the victim wakes."""
    place, expected = _place(folder, kind)
    victim = start(place, "victim", f"{step}@1:pause={FREEZE}", purge=True)
    victim.join(LEASE * 1.5)
    assert run(place, "other", purge=True) == 0
    victim.join(60)
    assert run(place, "again", purge=True) == 0
    return place, expected, victim.exitcode


Runs = dict[tuple[str, str, str], "Future[tuple[Place, list[int], int]]"]


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Every freezing case, several at a time: they mostly wait."""
    base = tmp_path_factory.mktemp("frozen")
    with ThreadPoolExecutor(6) as pool:
        runs: Runs = {}
        for kind in KINDS:
            for step in STEPS:
                alone = base / f"{kind}-{step}-alone"
                over = base / f"{kind}-{step}-overtaken"
                fault = f"pause={FREEZE}"
                runs[kind, step, "alone"] = pool.submit(_alone, alone, kind, f"{step}@1", fault)
                runs[kind, step, "overtaken"] = pool.submit(_overtaken, over, kind, step)
        yield runs


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_killed_then_run_again(tmp_path: Path, kind: str, step: str) -> None:
    """A loader killed at any step leaves nothing that the next run does not put right."""
    place, expected, code = _alone(tmp_path / "case", kind, step, "kill")
    assert code == -signal.SIGKILL
    assert_settled(place, expected)
    assert list(place.stage.iterdir()) == []


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_killed_beside_another(tmp_path: Path, kind: str, step: str) -> None:
    """A loader killed at any step does not disturb another on the same stage."""
    place, expected, _ = _beside(tmp_path / "case", kind, step, "kill")
    assert_settled(place, expected)
    assert list(place.stage.iterdir()) == []


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_failed_then_run_again(tmp_path: Path, kind: str, step: str) -> None:
    """An error at any step is reported, and the next run puts everything right."""
    place, expected, code = _alone(tmp_path / "case", kind, step, "error")
    assert code == 1
    assert_settled(place, expected)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_failed_once(tmp_path: Path, kind: str, step: str) -> None:
    """An error that does not come back on the way out harms nothing either."""
    place, expected, code = _alone(tmp_path / "case", kind, f"{step}@1", "error")
    assert code == 1
    assert_settled(place, expected)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_failed_beside_another(tmp_path: Path, kind: str, step: str) -> None:
    """An error at any step of one loader does not disturb another."""
    place, expected, _ = _beside(tmp_path / "case", kind, f"{step}@1", "error")
    assert_settled(place, expected)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_frozen_alone(frozen: Runs, kind: str, step: str) -> None:
    """A loader that sleeps beyond its lease and meets nobody goes on and ends well."""
    place, expected, code = frozen[kind, step, "alone"].result()
    assert code == 0
    assert_settled(place, expected)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_frozen_and_overtaken(frozen: Runs, kind: str, step: str) -> None:
    """A loader that wakes after another took its load over loads nothing twice."""
    place, expected, _ = frozen[kind, step, "overtaken"].result()
    assert_settled(place, expected)
