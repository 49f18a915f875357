"""ARCHIVE: loaded sources are moved, once, over nothing, whenever the loader dies."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from calque.config import Settings, StageSettings
from calque.errors import StatementInvalid
from calque.ledger import open_ledger
from calque.ledger.schema import purges
from calque.loader.request.request import LoadRequest
from calque.loader.run_request import RequestRun
from tests.loader.loader import Place, run
from tests.loader.world import assert_settled, ids, write_files

STEPS = ("finalise.before", "finalise.after", "purge.before", "purge.copied", "purge.after")


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder, by its path in it; what a killed copy left half done is none."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".calque-")
    }


def queued(place: Place) -> int:
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        return len(connection.execute(select(purges)).all())


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system, to which nothing can be renamed."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or os.stat(shared).st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("there is one file system only")
    folder = Path(tempfile.mkdtemp(prefix="calque-archive-", dir=shared))
    yield folder
    shutil.rmtree(folder)


def test_loaded_files_are_moved(place: Place) -> None:
    """What was loaded leaves the stage for the archive, folders and names as they were."""
    expected = write_files(place.stage / "2026", 2) + write_files(place.stage, 1, first=2)
    before = tree(place.stage)
    archive = place.folder / "old"
    report = place.load(archive=str(archive))
    assert (report.archived, report.purged) == (3, 0)
    assert tree(place.stage) == {}
    assert tree(archive) == before
    assert queued(place) == 0
    assert_settled(place, expected)


def test_what_was_not_loaded_stays(simple: Place) -> None:
    """A file beyond the limit waits in the stage."""
    write_files(simple.stage, 2)
    assert simple.load(max_files=1, archive=str(simple.folder / "old")).archived == 1
    assert list(tree(simple.stage)) == ["f00001.csv"]


def test_a_taken_name_is_not_overwritten(simple: Place) -> None:
    """Other bytes under the name stay; the file goes into a folder named after its load."""
    write_files(simple.stage, 1)
    body = (simple.stage / "f00000.csv").read_text()
    archive = simple.folder / "old"
    archive.mkdir()
    (archive / "f00000.csv").write_text("mine")
    report = simple.load(archive=str(archive))
    assert report.archived == 1
    assert tree(archive) == {"f00000.csv": "mine", f"{report.load_ids[0]}/f00000.csv": body}
    assert tree(simple.stage) == {}


def test_two_taken_names_are_trouble(simple: Place) -> None:
    """Where no name is free the file stays in the stage and in the queue, and it is told."""
    write_files(simple.stage, 1)
    archive = simple.folder / "old"
    for folder in (archive, archive / "nightly"):
        folder.mkdir()
        (folder / "f00000.csv").write_text("mine")
    report = simple.load(archive=str(archive), label="nightly")
    assert report.archived == 0
    assert any("hold other files" in note for note in report.notes)
    assert list(tree(simple.stage)) == ["f00000.csv"]
    (archive / "f00000.csv").unlink()
    assert simple.load().archived == 1
    assert tree(simple.stage) == {}


def test_a_replaced_source_is_left_alone(simple: Place) -> None:
    """A source that was replaced after its load is not moved."""
    write_files(simple.stage, 1)
    path = simple.stage / "f00000.csv"
    archive = str(simple.folder / "old")
    assert run(simple, "victim", "purge.before:kill", archive=archive) == -signal.SIGKILL
    path.write_text("id,name\n7,x\n")
    assert simple.load(on_changed="skip").archived == 0
    assert path.read_text() == "id,name\n7,x\n"
    assert queued(simple) == 0


@pytest.mark.parametrize("step", STEPS)
def test_killed_between_and_run_again(simple: Place, elsewhere: Path, step: str) -> None:
    """Killed at any step of the move, between copy and delete too: every file is there once."""
    expected = write_files(simple.stage, 3)
    before = tree(simple.stage)
    code = run(simple, "victim", f"{step}@1:kill", archive=str(elsewhere))
    assert code == -signal.SIGKILL
    assert {**tree(simple.stage), **tree(elsewhere)} == before
    assert run(simple, "again") == 0
    assert tree(elsewhere) == before
    assert tree(simple.stage) == {}
    assert queued(simple) == 0
    assert_settled(simple, expected)


def test_an_archive_in_the_stage_is_refused(delta: Place) -> None:
    """Moved files must not come back as new ones; a hidden folder in the stage is no part of it."""
    expected = write_files(delta.stage, 1)
    for wrong in (delta.stage, delta.stage / "done"):
        with pytest.raises(StatementInvalid, match="lies in the stage"):
            delta.load(archive=str(wrong))
    assert delta.load(archive=str(delta.stage / "_done")).archived == 1
    assert len(delta.load().files) == 0
    assert ids(delta) == Counter(expected)


def test_an_archive_in_the_table_is_refused(delta: Place) -> None:
    """Files of others do not belong under a table's root."""
    write_files(delta.stage, 1)
    delta.load()
    with pytest.raises(StatementInvalid, match="table's own folder"):
        delta.load(archive=f"{delta.table}/old")


def test_an_archive_by_its_name(delta: Place) -> None:
    """@name/path of the configuration is an archive too, for whoever works off the queue."""
    write_files(delta.stage, 1)
    old = delta.folder / "old"
    settings = Settings(stages={"old": StageSettings(location=str(old))})
    request = LoadRequest(stage=f"{delta.stage}/", into=delta.table, archive="@old/2026/")
    template = delta.statement()
    statement = RequestRun(request, settings, template.ledger, template._choose_engine)
    assert statement.run().archived == 1
    assert list(tree(old)) == ["2026/f00000.csv"]


def test_more_than_a_page_of_the_queue(delta: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue is worked off to its end, whatever its length."""
    write_files(delta.stage, 7)
    monkeypatch.setattr("calque.ledger.purge.FILES_AT_ONCE", 3)
    assert delta.load(purge=True).purged == 7
