"""The crash matrix: every step, killed, failed or frozen, alone or beside another loader."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from calque.loader.commit.protocol import STEPS
from tests.ledger.conftest import make_ledger
from tests.loader.loader import LEASE, Place, ended, report, run, start
from tests.loader.world import assert_settled, write_files
from tests.servers.postgres import PostgresServer

KINDS = ("delta", "iceberg")
FREEZE = 2.5 * LEASE
FILES = 3


Case = tuple[Place, list[int], int]


def _alone(place: Place, step: str, action: str) -> Case:
    """The victim stops at the step; the same statement is run again afterwards."""
    expected = write_files(place.stage, FILES)
    code = run(place, "victim", f"{step}:{action}", purge=True)
    assert run(place, "again", purge=True) == 0
    return place, expected, code


def _beside(place: Place, step: str, action: str) -> Case:
    """Another loader starts with the victim and a third comes after both."""
    expected = write_files(place.stage, FILES)
    victim = start(place, "victim", f"{step}:{action}", purge=True)
    other = start(place, "other", purge=True)
    victim.join(60)
    assert ended(place, "other", other) == 0
    assert run(place, "again", purge=True) == 0
    return place, expected, victim.exitcode


def _overtaken(place: Place, step: str) -> Case:
    """The victim freezes beyond its lease; another takes over; then the victim wakes."""
    expected = write_files(place.stage, FILES)
    victim = start(place, "victim", f"{step}@1:pause={FREEZE}", purge=True)
    victim.join(LEASE * 1.5)
    assert run(place, "other", purge=True) == 0
    victim.join(60)
    assert run(place, "again", purge=True) == 0
    return place, expected, victim.exitcode


def _second(place: Place) -> Place:
    """The same stage and table with another ledger."""
    return replace(place, ledger=str(place.folder / "second.db"))


def _two_killed(place: Place, step: str) -> Case:
    """The victim is killed; others come in turn, with another ledger and with the victim's."""
    expected = write_files(place.stage, FILES)
    code = run(place, "victim", f"{step}:kill", purge=True)
    for number, one in enumerate((_second(place), place, _second(place))):
        assert run(one, f"after{number}", purge=True) == 0, report(one, f"after{number}")
    return place, expected, code


def _two_frozen(place: Place, step: str) -> Case:
    """The victim freezes while one with another ledger loads the same files; then it wakes."""
    expected = write_files(place.stage, FILES)
    victim = start(place, "victim", f"{step}@1:pause={FREEZE}", purge=True)
    victim.join(LEASE * 1.5)
    assert run(_second(place), "other", purge=True) == 0, report(place, "other")
    victim.join(60)
    for number, one in enumerate((place, _second(place))):
        assert run(one, f"after{number}", purge=True) == 0, report(one, f"after{number}")
    return place, expected, victim.exitcode


@contextmanager
def _placed(
    folder: Path, kind: str, ledger: str, request: pytest.FixtureRequest
) -> Iterator[Place]:
    """A folder with a ledger of its own: a file in it, or a database."""
    folder.mkdir(parents=True)
    if ledger == "sqlite":
        yield Place(folder, kind, str(folder / "ledger.db"))
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.prepared(make_ledger)
    yield Place(folder, kind, url)
    server.drop(url)


@pytest.fixture
def place(
    kind: str, ledger: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Place]:
    """Where one case happens."""
    with _placed(tmp_path / "case", kind, ledger, request) as made:
        yield made


Runs = dict[tuple[str, str, str], "Future[Case]"]


@pytest.fixture(scope="module")
def frozen(
    ledger: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """Every freezing case, several at a time: they mostly wait."""
    base = tmp_path_factory.mktemp("frozen")
    runs: Runs = {}
    with ExitStack() as places, ThreadPoolExecutor(6) as pool:
        for kind, step, way in sorted(_frozen_cases(request.session, ledger)):
            name = f"{kind}-{step}-{way}"
            place = places.enter_context(_placed(base / name, kind, ledger, request))
            if way == "alone":
                case = pool.submit(_alone, place, f"{step}@1", f"pause={FREEZE}")
            else:
                case = pool.submit(_overtaken, place, step)
            runs[kind, step, way] = case
        yield runs


def _frozen_cases(session: pytest.Session, ledger: str) -> set[tuple[str, str, str]]:
    """The freezing cases with this ledger among the tests that were chosen."""
    found = set()
    for item in session.items:
        if "frozen" in getattr(item, "fixturenames", ()) and isinstance(item, pytest.Function):
            given = item.callspec.params
            if given["ledger"] == ledger:
                way = "alone" if item.originalname == "test_frozen_alone" else "overtaken"
                found.add((str(given["kind"]), str(given["step"]), way))
    return found


SOAK = pytest.mark.soak
LEDGERS = ["sqlite", pytest.param("postgres", marks=SOAK)]
"""The whole matrix on PostgreSQL is for the long run."""

each_ledger = pytest.mark.parametrize("ledger", LEDGERS, scope="module")


def kind_in_turn(step: str, turn: int) -> str:
    """The kind of table that a step is tried with by default; the other kind is for soak.

    It changes from step to step, and with the turn from test to test: tests that are alike take
    turns, so that together they try every step with every kind.
    """
    return KINDS[(STEPS.index(step) + turn) % len(KINDS)]


def each_step(turn: int) -> pytest.MarkDecorator:
    """Every step with every kind of table, in two halves."""
    return pytest.mark.parametrize(
        ("kind", "step"),
        [
            pytest.param(kind, step, marks=() if kind == kind_in_turn(step, turn) else SOAK)
            for kind, step in product(KINDS, STEPS)
        ],
    )


def _killed_by_default(kind: str, ledger: str, step: str) -> bool:
    """Every step with both kinds and both ledgers, each kind with one of the ledgers."""
    return (kind == kind_in_turn(step, 0)) == (ledger == "sqlite")


each_killed = pytest.mark.parametrize(
    ("kind", "ledger", "step"),
    [
        pytest.param(*case, marks=() if _killed_by_default(*case) else SOAK)
        for case in product(KINDS, ("sqlite", "postgres"), STEPS)
    ],
)


@each_killed
def test_killed_then_run_again(place: Place, step: str) -> None:
    """A loader killed at any step leaves nothing that the next run does not put right."""
    _, expected, code = _alone(place, step, "kill")
    assert code == -signal.SIGKILL
    assert_settled(place, expected)
    assert list(place.stage.iterdir()) == []


@each_step(turn=0)
@each_ledger
def test_killed_beside_another(place: Place, step: str) -> None:
    """A loader killed at any step does not disturb another on the same stage."""
    _, expected, _ = _beside(place, step, "kill")
    assert_settled(place, expected)
    assert list(place.stage.iterdir()) == []


@each_step(turn=0)
@each_ledger
def test_failed_then_run_again(place: Place, step: str) -> None:
    """An error at any step is reported, and the next run puts everything right.

    Right after the commit it is none: the next look at the table finds the load there.
    """
    _, expected, code = _alone(place, step, "error")
    assert code == (0 if step == "commit.after" else 1)
    assert_settled(place, expected)


@each_step(turn=1)
@each_ledger
def test_failed_once(place: Place, step: str) -> None:
    """An error that does not come back harms nothing, and is none once the table has the rows."""
    _, expected, code = _alone(place, f"{step}@1", "error")
    assert code == (0 if step in ("commit.after", "finalise.before", "finalise.after") else 1)
    assert_settled(place, expected)


@each_step(turn=1)
@each_ledger
def test_failed_beside_another(place: Place, step: str) -> None:
    """An error at any step of one loader does not disturb another."""
    _, expected, _ = _beside(place, f"{step}@1", "error")
    assert_settled(place, expected)


@each_step(turn=0)
@each_ledger
def test_frozen_alone(frozen: Runs, kind: str, step: str) -> None:
    """A loader that sleeps beyond its lease and meets nobody goes on and ends well."""
    place, expected, code = frozen[kind, step, "alone"].result()
    assert code == 0
    assert_settled(place, expected)


@each_step(turn=1)
@each_ledger
def test_frozen_and_overtaken(frozen: Runs, kind: str, step: str) -> None:
    """A loader that wakes after another took its load over loads nothing twice."""
    place, expected, _ = frozen[kind, step, "overtaken"].result()
    assert_settled(place, expected)


TELLING = ("prepare.after", "commit.before", "commit.after")
"""Where a load can be known to one ledger and not to the other; the other steps are for soak."""
two_ledgers = pytest.mark.parametrize(
    ("kind", "ledger", "step"),
    [
        pytest.param(
            kind,
            ledger,
            step,
            marks=() if ledger == "sqlite" and step in TELLING else SOAK,
        )
        for kind, ledger, step in product(KINDS, ("sqlite", "postgres"), STEPS)
    ],
)


@two_ledgers
def test_killed_with_two_ledgers(place: Place, step: str) -> None:
    """A loader killed at any step leads none astray that comes with another ledger."""
    _, expected, code = _two_killed(place, step)
    assert code == -signal.SIGKILL
    for one in (place, _second(place)):
        assert_settled(one, expected)
    assert list(place.stage.iterdir()) == []


@two_ledgers
def test_frozen_with_two_ledgers(place: Place, step: str) -> None:
    """A loader that wakes after another ledger's loaded its files loads none of them again."""
    _, expected, code = _two_frozen(place, step)
    assert code == 0
    for one in (place, _second(place)):
        assert_settled(one, expected)
    assert list(place.stage.iterdir()) == []
