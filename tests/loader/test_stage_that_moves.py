"""Stages that are not there, match nothing, or change while they are looked at."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from calque.errors import NotFound, PermissionDenied
from calque.loader.model.file_formats import FormatOptions, XmlFormat
from calque.loader.model.outcome import Status
from calque.loader.request.option_values import on_error
from tests.loader.loader import Place
from tests.loader.meddling import Meddling, as_nobody
from tests.loader.world import ids, write_file, write_files

SKIP_FILE = on_error("skip_file")


def rewriting(path: Path, *, gone: bool = False, folder: bool = False) -> Meddling:
    """An engine under whose eyes a file is rewritten, or removed, before its schema is read."""

    def meddle() -> None:
        if gone or folder:
            path.unlink()
        if folder:
            path.mkdir()
        elif not gone:
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


def contents(suffix: str, numbers: Sequence[int]) -> bytes:
    """A file of that format with a column of these numbers."""
    body, table = io.BytesIO(), pa.table({"id": list(numbers)})
    if suffix == "parquet":
        pq.write_table(table, body)
    elif suffix == "orc":
        orc.write_table(table, body)
    elif suffix == "avro":
        field = {"name": "id", "type": "long"}
        schema = {"type": "record", "name": "r", "fields": [field]}
        fastavro.writer(body, schema, table.to_pylist())
    elif suffix == "xml":
        body.write(b"<r>%s</r>" % b"".join(b"<row><id>%d</id></row>" % one for one in numbers))
    else:
        body.write(b"".join(b'{"id": %d}\n' % one for one in numbers))
    return gzip.compress(body.getvalue()) if suffix.endswith(".gz") else body.getvalue()


@pytest.mark.parametrize("suffix", ["parquet", "orc", "avro", "xml", "json", "json.gz"])
def test_any_format_rewritten_while_its_schema_is_read(tmp_path: Path, suffix: str) -> None:
    """With other rows or as garbage: CHANGED, and the next load takes what is there then."""
    place = Place(tmp_path, "delta", str(tmp_path / "ledger.db"))
    place.stage.mkdir()
    paths = [place.stage / f"{name}.{suffix}" for name in "ab"]
    paths[1].write_bytes(contents(suffix, [1]))
    for rewritten in (b"garbage", contents(suffix, range(10, 50))):
        paths[0].write_bytes(contents(suffix, [0]))
        engine = Meddling(before_inference=partial(paths[0].write_bytes, rewritten))
        told = place.load(engine=engine, create=True, evolve=True, format=formats(suffix))
        assert {row.name: row.status for row in told.files}[paths[0].name] == Status.CHANGED
    place.load(format=formats(suffix))
    assert sorted(ids(place).elements()) == [1, *range(10, 50)]


def formats(suffix: str) -> FormatOptions | None:
    return XmlFormat(row_tag="row") if suffix == "xml" else None


@pytest.mark.parametrize("evolve", [False, True])
def test_a_folder_in_the_place_of_a_file(delta: Place, evolve: bool) -> None:
    """It is CHANGED as well, and the others are loaded."""
    if evolve:
        write_file(delta.stage, 0)
        delta.load()
    write_files(delta.stage, 2, first=1)
    taken = delta.stage / "f00001.csv"
    report = delta.load(engine=rewriting(taken, folder=True), evolve=evolve)
    found = {row.name: row.status for row in report.files}
    assert (found["f00001.csv"], found["f00002.csv"]) == (Status.CHANGED, Status.LOADED)


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_a_file_that_may_not_be_read_fails_alone(tmp_path: Path, suffix: str) -> None:
    """Under SKIP_FILE the others make the table and are loaded; by default it ends the load."""
    texts = {"csv": "id,name\n1,x\n", "json": '{"id": 1, "name": "x"}\n'}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        place = Place(Path(folder), "delta", str(Path(folder) / "ledger.db"))
        place.stage.mkdir()
        for name in ("a", "b"):
            (place.stage / f"{name}.{suffix}").write_text(texts[suffix])
        warm = Place(tmp_path, "delta", str(tmp_path / "ledger.db"))
        warm.load(stage=place.source, on_error=SKIP_FILE)  # imports, which nobody may not read
        (place.stage / f"a.{suffix}").chmod(0)
        with as_nobody():
            with pytest.raises(PermissionDenied):
                place.load()
            report = place.load(on_error=SKIP_FILE)
        found = {row.name: row.status for row in report.files}
        assert found == {f"a.{suffix}": Status.FAILED, f"b.{suffix}": Status.LOADED}


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
