"""Stages that are not there, match nothing, or change while they are looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.errors import NotFound
from calque.loader.model.outcome import Status
from tests.loader.loader import Place
from tests.loader.meddling import Meddling
from tests.loader.world import ids, write_file, write_files


def rewriting(path: Path, *, gone: bool = False) -> Meddling:
    """An engine under whose eyes a file is rewritten, or removed, before its schema is read."""

    def meddle() -> None:
        if gone:
            path.unlink()
        else:
            path.write_text("id,name\n999,rewritten\n1000,more\n")

    return Meddling(before_inference=meddle)


@pytest.mark.parametrize("evolve", [False, True])
def test_a_file_rewritten_while_its_schema_is_read(simple: Place, evolve: bool) -> None:
    """It is CHANGED, the others are loaded, and the next load takes it."""
    if evolve:
        write_file(simple.stage, 0)
        simple.load()
    expected = write_files(simple.stage, 2, first=1)
    touched = simple.stage / "f00001.csv"
    report = simple.load(engine=rewriting(touched), evolve=evolve)
    found = {row.name: row.status for row in report.files}
    assert found["f00001.csv"] == Status.CHANGED
    assert found["f00002.csv"] == Status.LOADED
    simple.load()
    loaded = set(ids(simple))
    assert {999, 1000} | set(expected[4:]) <= loaded
    assert not loaded & set(expected[:4])


@pytest.mark.parametrize("gone", [False, True])
def test_all_files_move_while_their_schema_is_read(simple: Place, gone: bool) -> None:
    """Then nothing is loaded and nothing is made, and the statement ends without an error."""
    write_files(simple.stage, 1)
    report = simple.load(engine=rewriting(simple.stage / "f00000.csv", gone=gone))
    assert [row.status for row in report.files] == [Status.CHANGED]
    assert not report.complete
    if not gone:
        assert simple.load().rows_loaded == 2


def test_a_stage_that_is_not_there(simple: Place) -> None:
    """A missing folder is an error, with a glob and without, before and after the first load."""
    for stage in (simple.source, f"{simple.stage}/*.csv", str(simple.stage)):
        with pytest.raises(NotFound, match="is not there"):
            simple.load(stage=stage)
    write_files(simple.stage, 1)
    simple.load()
    with pytest.raises(NotFound, match="is not there"):
        simple.load(stage=f"{simple.folder}/elsewhere/")


def test_a_stage_in_which_nothing_matches(simple: Place) -> None:
    """A folder without such files is no error; the report says that nothing was met."""
    write_files(simple.stage, 1)
    for options in ({"pattern": "nothing"}, {"stage": f"{simple.stage}/*.json"}):
        report = simple.load(**options)
        assert (report.matched, report.complete) == (0, True)
    assert simple.load().matched == 1
    assert simple.load().matched == 1
