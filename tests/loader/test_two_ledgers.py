"""Two ledgers on one table: each is a cache of what the table tells, and no file counts twice."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from calque import faults
from calque.config import Settings
from calque.errors import AlreadyExists
from calque.ledger import open_ledger
from calque.ledger.identity import DAY
from calque.loader.after.expire import expire
from calque.loader.commit.sidecars import Sidecars
from calque.loader.commit.truncate import truncate_table
from tests.ledger.conftest import make_ledger
from tests.loader.loader import Place, ended, report, run, start
from tests.loader.meddling import Meddling
from tests.loader.other_writers import expire_snapshots, restore
from tests.loader.world import assert_settled, ids, write_file, write_files
from tests.servers.postgres import PostgresServer


@pytest.fixture
def other(place: Place, request: pytest.FixtureRequest) -> Iterator[Place]:
    """The same stage and table as ``place``, with a ledger of its own of the same kind."""
    if not place.ledger.startswith("postgres"):
        yield replace(place, ledger=str(place.folder / "other.db"))
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.prepared(make_ledger)
    yield replace(place, ledger=url)
    server.drop(url)


def counts(place: Place, **options: object) -> dict[str, int]:
    return dict(place.load(**options).files.counts)


def test_each_takes_in_what_the_other_loads(place: Place, other: Place) -> None:
    """A loads, B loads, A loads more, B loads again, and so on: every file is in once."""
    expected: list[int] = []
    for number in range(4):
        first, second = (place, other) if number % 2 else (other, place)
        expected += write_file(place.stage, number)
        assert counts(first) == {"LOADED": 1, **({"SKIPPED_LOADED": number} if number else {})}
        assert counts(second) == {"SKIPPED_LOADED": number + 1}
    for one in (place, other):
        assert_settled(one, expected)


def test_one_file_by_both_at_once(place: Place, other: Place) -> None:
    """The same new files by two ledgers at once: one commits some, the other the rest."""
    expected = write_files(place.stage, 3)
    place.load(files=("f00000.csv",))

    def quicker() -> None:
        assert counts(other, files=("f00001.csv",)) == {"LOADED": 1}

    told = place.load(engine=Meddling(after=_once(quicker)))
    assert dict(told.files.counts) == {"LOADED": 1, "SKIPPED_LOADED": 2}
    assert {row.name for row in told.files if row.status == "LOADED"} == {"f00002.csv"}
    assert any("loaded before" in (row.message or "") for row in told.files)
    assert counts(other) == {"SKIPPED_LOADED": 3}
    for one in (place, other):
        assert_settled(one, expected)


def _once(act: Callable[[], object]) -> Callable[[], None]:
    """What happens the first time only."""
    done: list[bool] = []

    def run() -> None:
        if not done:
            done.append(True)
            act()

    return run


@pytest.fixture
def simple_other(simple: Place) -> Place:
    """Another ledger for the same table."""
    return replace(simple, ledger=str(simple.folder / "other.db"))


def test_commits_that_say_nothing_of_themselves(delta: Place) -> None:
    """Commits of other writers without a description do not hide ours, nor shift their versions."""
    other = replace(delta, ledger=str(delta.folder / "other.db"))
    expected = write_files(delta.stage, 1)
    delta.load()
    other.load()
    expected += write_file(delta.stage, 1)
    delta.load()
    log = delta.folder / "lake" / "t" / "_delta_log"
    last = max(int(path.stem) for path in log.glob("*.json"))
    (log / f"{last + 1:020d}.json").write_text('{"txn":{"appId":"theirs","version":1}}\n')
    assert counts(other) == {"SKIPPED_LOADED": 2}
    assert_settled(other, expected)


def test_a_log_that_was_cleaned(delta: Place) -> None:
    """Where the log no longer reaches back to the last look, the sidecars tell."""
    other = replace(delta, ledger=str(delta.folder / "other.db"))
    expected = write_files(delta.stage, 1)
    delta.load()
    other.load()
    for number in (1, 2):
        expected += write_file(delta.stage, number)
        delta.load()
    delta.delta_table().create_checkpoint()
    for entry in sorted((delta.folder / "lake" / "t" / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()
    assert counts(other) == {"SKIPPED_LOADED": 3}
    assert_settled(other, expected)


def test_snapshots_that_were_expired(tmp_path: Path) -> None:
    """Where the table has forgotten the snapshots since the last look, the sidecars tell."""
    place = Place(tmp_path, "iceberg", str(tmp_path / "ledger.db"))
    other = replace(place, ledger=str(tmp_path / "other.db"))
    expected = write_files(place.stage, 1)
    place.load()
    other.load()
    for number in (1, 2, 3):
        expected += write_file(place.stage, number)
        place.load()
    expire_snapshots(place)
    assert counts(other) == {"SKIPPED_LOADED": 4}
    assert_settled(other, expected)


def test_a_dry_run_knows_what_others_loaded(simple: Place, simple_other: Place) -> None:
    """A dry run tells what a load would do, and takes nothing in."""
    write_files(simple.stage, 1)
    simple.load()
    simple_other.load()
    write_file(simple.stage, 1)
    simple.load()
    before = simple.files()
    assert counts(simple_other, dry_run=True) == {"SKIPPED_LOADED": 2}
    assert simple.files() == before


def test_forced_by_both(simple: Place, simple_other: Place) -> None:
    """FORCE loads whatever others loaded: it doubles, with two ledgers as with one."""
    expected = write_files(simple.stage, 1)
    simple.load()
    told = simple.load(force=True, engine=Meddling(after=_once(simple_other.load)))
    assert told.files_loaded == 1
    assert ids(simple) == Counter(expected * 2)


def test_changed_and_reloaded_by_both(simple: Place, simple_other: Place) -> None:
    """A file that changed is loaded again once, whoever of the two is quicker."""
    expected = write_files(simple.stage, 2)
    simple.load()
    simple_other.load()
    expected += write_file(simple.stage, 1, generation=1)
    told = simple.load(engine=Meddling(after=_once(simple_other.load)))
    assert dict(told.files.counts) == {"SKIPPED_LOADED": 2}
    assert ids(simple) == Counter(expected)


@pytest.mark.parametrize("both", [True, False])
def test_replaced_by_both(simple: Place, simple_other: Place, both: bool) -> None:
    """Two ledgers replace rows of one data file at once: the same source's, or a neighbour's."""
    for number in range(3):
        write_file(simple.stage, number)
    simple.load()
    simple_other.load()
    mine, theirs = 1, 1 if both else 2
    rows = {number: write_file(simple.stage, number, generation=1) for number in {mine, theirs}}
    rows[0] = write_file(simple.stage, 0)

    def quicker() -> None:
        name = f"f{theirs:05d}.csv"
        assert counts(simple_other, on_changed="replace", files=(name,)) == {"LOADED": 1}

    told = simple.load(
        on_changed="replace", files=(f"f{mine:05d}.csv",), engine=Meddling(after=_once(quicker))
    )
    assert told.files_loaded == (0 if both else 1)
    if both:
        rows[2] = write_file(simple.stage, 2)
    expected = [one for some in rows.values() for one in some]
    for one in (simple, simple_other):
        assert set(counts(one, on_changed="replace")) == {"SKIPPED_LOADED"}
        assert ids(one) == Counter(expected)


def test_changed_meanwhile_and_left_out(simple: Place, simple_other: Place) -> None:
    """Under on_changed=skip a file of which others loaded an earlier version is left out."""
    write_files(simple.stage, 1)
    simple.load()
    old = write_file(simple.stage, 1)

    def quicker() -> None:
        shutil.copy2(simple.stage / "f00001.csv", simple.folder / "new")
        write_file(simple.stage, 1)
        simple_other.load()
        os.replace(simple.folder / "new", simple.stage / "f00001.csv")

    write_file(simple.stage, 1, generation=20)
    told = simple.load(on_changed="skip", engine=Meddling(before=_once(quicker)))
    assert {row.name: str(row.status) for row in told.files}["f00001.csv"] == "CHANGED"
    assert ids(simple) == Counter([*old, *range(4)])


@pytest.mark.parametrize("force", [False, True])
def test_a_label_by_both(simple: Place, simple_other: Place, force: bool) -> None:
    """A label is one of the table: two ledgers that use it at once load it once."""
    write_files(simple.stage, 1)
    simple.load()
    simple_other.load()
    expected = write_files(simple.stage, 2)

    def quicker() -> None:
        assert simple_other.load(label="day", force=force).files_loaded >= 1

    statement = simple.statement(label="day", force=force, engine=Meddling(after=_once(quicker)))
    if force:
        with pytest.raises(AlreadyExists, match="label 'day'"):
            statement.run()
        expected += list(range(4))
    else:
        assert statement.run().files_loaded == 0
    assert simple.load(label="day", force=force).replayed
    assert simple_other.load(label="day", force=force).replayed
    assert ids(simple) == Counter(expected)


def test_truncated_with_another_ledger(simple: Place, simple_other: Place) -> None:
    """What another ledger truncated counts as new, and each file comes back once."""
    expected = write_files(simple.stage, 2)
    simple.load()
    simple_other.load()
    with open_ledger(simple_other.ledger) as ledger:
        truncate_table(simple.table, Settings(), ledger)
    assert counts(simple) == {"LOADED": 2}
    assert counts(simple_other) == {"SKIPPED_LOADED": 2}
    assert ids(simple) == Counter(expected)


def test_restored_between_two_ledgers(simple: Place, simple_other: Place) -> None:
    """After a restore both ledgers know what is in the table, and what is not."""
    expected = write_files(simple.stage, 1)
    version = simple.load().table_version
    simple_other.load()
    expected += write_file(simple.stage, 1)
    simple.load()
    simple_other.load()
    assert version is not None
    restore(simple, version)
    assert counts(simple_other) == {"LOADED": 1, "SKIPPED_LOADED": 1}
    assert counts(simple) == {"SKIPPED_LOADED": 2}
    assert ids(simple) == Counter(expected)


def test_tenants_keep_to_themselves(simple: Place, simple_other: Place) -> None:
    """What one tenant loads is no other's, whatever the ledger; a truncation is everybody's."""
    expected = write_files(simple.stage, 1)

    def load(place: Place, tenant: str) -> dict[str, int]:
        statement = place.statement()
        statement.ledger.tenant = tenant
        return dict(statement.run().files.counts)

    assert load(simple, "a") == {"LOADED": 1}
    assert load(simple_other, "b") == {"LOADED": 1}
    assert load(simple_other, "a") == {"SKIPPED_LOADED": 1}
    assert load(simple, "b") == {"SKIPPED_LOADED": 1}
    assert ids(simple) == Counter(expected * 2)
    with open_ledger(simple.ledger, tenant="a") as ledger:
        truncate_table(simple.table, Settings(), ledger)
    assert load(simple_other, "b") == {"LOADED": 1}
    assert load(simple, "b") == {"SKIPPED_LOADED": 1}
    assert ids(simple) == Counter(expected)


def test_a_marker_is_kept_until_it_is_noted(tmp_path: Path) -> None:
    """A loader that died right after its commit finds it, though others have taken it in."""
    place = Place(tmp_path, "iceberg", str(tmp_path / "ledger.db"))
    other = replace(place, ledger=str(tmp_path / "other.db"))
    expected = write_files(place.stage, 1)
    place.load()
    other.load()
    expected += write_file(place.stage, 1)
    assert run(place, "victim", "commit.after:kill") == -signal.SIGKILL
    for number in (2, 3):
        expected += write_file(place.stage, number)
        other.load()
    expire_snapshots(place)
    assert counts(place) == {"SKIPPED_LOADED": 4}
    assert_settled(place, expected)


def test_a_marker_of_another_tables_namesake(tmp_path: Path) -> None:
    """A label that the other ledger used for another table lets no marker of this one go."""
    place = Place(tmp_path, "iceberg", str(tmp_path / "ledger.db"))
    other = replace(place, ledger=str(tmp_path / "other.db"))
    expected = write_files(place.stage, 1)
    (tmp_path / "elsewhere").mkdir()
    replace(other, folder=tmp_path / "elsewhere").load(stage=place.source, label="day")
    other.load()
    expected += write_files(place.stage, 2, first=1)

    def quicker() -> None:
        told = run(place, "victim", "commit.after:kill", label="day", files=("f00001.csv",))
        assert told == -signal.SIGKILL

    other.load(files=("f00002.csv",), engine=Meddling(after=_once(quicker)))
    expire_snapshots(place)
    assert counts(place) == {"SKIPPED_LOADED": 3}
    assert_settled(place, expected)


def test_a_marker_that_came_while_its_load_was_fenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load that commits at that very moment, and dies, is not committed again later."""
    place = Place(tmp_path, "iceberg", str(tmp_path / "ledger.db"))
    other = replace(place, ledger=str(tmp_path / "other.db"))
    expected = write_files(place.stage, 1)
    place.load()
    expected += write_files(place.stage, 1, first=1)
    sleeper = start(place, "sleeper", "prepare.after:pause=60,commit.after:kill")
    while not is_frozen(sleeper.pid):
        time.sleep(0.02)
    plain = faults.point

    def wake() -> None:
        os.kill(sleeper.pid, signal.SIGCONT)
        assert ended(place, "sleeper", sleeper) == -signal.SIGKILL

    once = _once(wake)

    def point(step: str) -> None:
        if step == "commit.before":
            once()
        plain(step)

    monkeypatch.setattr(faults, "point", point)
    assert counts(other) == {"SKIPPED_LOADED": 2}
    for number in (2, 3):
        expected += write_file(place.stage, number)
        other.load()
    expire_snapshots(place)
    assert counts(place) == {"SKIPPED_LOADED": 4}
    assert_settled(place, expected)


def is_frozen(pid: int) -> bool:
    """Whether it stands at its fault point."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_many_ledgers_at_once(simple: Place) -> None:
    """Loaders with a ledger each start at once, without a table yet: every file counts once."""
    expected = write_files(simple.stage, 4)
    places = [replace(simple, ledger=str(simple.folder / f"l{number}.db")) for number in range(3)]
    running = [start(one, f"l{number}") for number, one in enumerate(places)]
    for number, one in enumerate(places):
        assert ended(one, f"l{number}", running[number]) == 0, report(one, f"l{number}")
    for one in places:
        assert counts(one) == {"SKIPPED_LOADED": 4}
        assert_settled(one, expected)


def test_a_sidecar_is_left_to_its_ledger(simple: Place, simple_other: Place) -> None:
    """A ledger that took a load in forgets it in time, and leaves what it left beside the table."""
    expected = write_files(simple.stage, 1)
    simple.load()
    simple_other.load()

    def later() -> int:
        return time.time_ns() // 1000 + 70 * DAY

    with open_ledger(simple_other.ledger, clock=later) as ledger:
        swept = expire(Settings(), ledger)
    assert (swept.files, swept.loads, swept.sidecars) == (1, 1, 0)
    lost = replace(simple, ledger=str(simple.folder / "lost.db"))
    assert counts(lost) == {"SKIPPED_LOADED": 1}
    assert ids(simple) == Counter(expected)


LATER = 3 * DAY


def later() -> int:
    """The clock of three days from now."""
    return time.time_ns() // 1000 + LATER


def forget_all(place: Place) -> None:
    """Let a ledger that remembers for a day only forget what it has, three days from now."""
    with open_ledger(place.ledger, life=DAY, clock=later) as ledger:
        swept = expire(Settings(), ledger)
    assert (swept.sidecars, swept.troubles) == (1, [])


@pytest.mark.parametrize("has_met", [True, False], ids=["an old ledger", "a new ledger"])
def test_what_one_has_forgotten_is_uncertain_to_all(
    place: Place, other: Place, has_met: bool
) -> None:
    """A ledger with a short memory, and one that was never told in time: no row is doubled."""
    expected = write_files(place.stage, 1)
    if has_met:
        write_file(place.stage, 7)
        other.load(files=("f00007.csv",))
        (place.stage / "f00007.csv").unlink()
        expected += [700, 701, 702, 703]
    assert counts(place, files=("f00000.csv",), life=DAY) == {"LOADED": 1}
    forget_all(place)
    expected += write_file(place.stage, 1)
    os.utime(place.stage / "f00001.csv", (later() / 1e6, later() / 1e6))
    told = {"SKIPPED_UNCERTAIN": 1, "LOADED": 1}
    assert counts(other, dry_run=True, clock=later) == {"SKIPPED_UNCERTAIN": 1, "PLANNED": 1}
    assert counts(other, clock=later) == told
    lost = replace(place, ledger=str(place.folder / "lost.db"))
    assert counts(lost, clock=later) == {"SKIPPED_UNCERTAIN": 1, "SKIPPED_LOADED": 1}
    assert ids(place) == Counter(expected)
    assert counts(lost, clock=later, load_uncertain_files=True)["LOADED"] == 1


def test_a_log_that_was_cut_after_one_forgot(tmp_path: Path) -> None:
    """Where neither the log nor a sidecar tells of a load, the note beside the table does."""
    place = Place(tmp_path, "iceberg", str(tmp_path / "ledger.db"))
    other = replace(place, ledger=str(tmp_path / "other.db"))
    expected = write_files(place.stage, 1)
    other.load()
    expected += write_file(place.stage, 1)
    assert counts(place, life=DAY)["LOADED"] == 1
    forget_all(place)
    expected += write_file(place.stage, 2)
    assert counts(place, files=("f00002.csv",)) == {"LOADED": 1}
    expire_snapshots(place)
    told = {"SKIPPED_LOADED": 2, "SKIPPED_UNCERTAIN": 1}
    assert counts(other, dry_run=True) == counts(other) == told
    assert ids(place) == Counter(expected)


def test_a_sleeper_after_the_other_forgot(simple: Place, simple_other: Place) -> None:
    """One that slept while another loaded its file and forgot it again does not commit it."""
    expected = write_files(simple.stage, 1)
    simple.load()
    expected += write_file(simple.stage, 1)

    def quicker() -> None:
        assert counts(simple_other, files=("f00001.csv",), life=DAY) == {"LOADED": 1}
        forget_all(simple_other)

    told = simple.load(engine=Meddling(after=_once(quicker)), files=("f00001.csv",))
    assert dict(told.files.counts) == {"SKIPPED_UNCERTAIN": 1}
    assert ids(simple) == Counter(expected)


def test_the_youngest_that_was_forgotten_counts(simple: Place) -> None:
    """Notes of what was forgotten: the greatest stays, each tenant and table has its own."""
    write_files(simple.stage, 1)
    simple.load()
    sidecars = Sidecars(simple.statement().lake.place)
    assert sidecars.forgotten_until("t", "us") is None
    for stamp in (5, 9, 7, -3, 9):
        sidecars.note_forgotten("t", "us", stamp)
    assert sidecars.forgotten_until("t", "us") == 9
    assert sidecars.forgotten_until("t", "them") is None
    assert sidecars.forgotten_until("other", "us") is None
    assert len([one for one in simple.files() if one.endswith(".forgotten")]) == 1
