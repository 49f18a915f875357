"""The first load of a table: the table is there with its rows, or not at all."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from calque.errors import CalqueError, DataError, NotFound
from calque.loader.commit.protocol import STEPS
from calque.loader.model.outcome import Status
from calque.loader.request.option_values import on_error
from calque.loader.request.options import build_format
from tests.loader.conftest import KINDS
from tests.loader.loader import Place, run
from tests.loader.world import assert_settled, ids, rows, write_file, write_files


def is_there(place: Place) -> bool:
    """Whether anybody would find a table."""
    if place.kind == "delta":
        return DeltaTable.is_deltatable(str(place.folder / "lake" / "t"))
    with suppress(NotFound):
        place.statement().lake.open()
        return True
    return False


def data_left(place: Place) -> set[str]:
    """Files under the table's place, a catalog's own apart."""
    return {one for one in place.files() if not one.startswith("catalog.db")}


def test_a_failed_first_load_leaves_no_table(simple: Place) -> None:
    """Neither table nor files stay, and the corrected command makes the table it means."""
    write_file(simple.stage, 1)
    (simple.stage / "f00002.csv").write_text("id,name\nnot a number\n")
    with pytest.raises(DataError):
        simple.load(schema=pa.schema([("id", pa.int64()), ("name", pa.string())]))
    assert not is_there(simple)
    assert data_left(simple) == set()
    (simple.stage / "f00002.csv").write_text("id,name\n7,x\n")
    schema = pa.schema([("id", pa.int32()), ("name", pa.string())])
    assert simple.load(schema=schema).files_loaded == 2
    assert rows(simple).schema.field("id").type == pa.int32()


@pytest.mark.parametrize("policy", ["SKIP_FILE", "CONTINUE"])
def test_a_first_load_in_which_every_file_fails(simple: Place, policy: str) -> None:
    """Where no file could be loaded there is no table, whatever the policy; errors are kept."""
    simple.stage.mkdir()
    (simple.stage / "a.csv").write_bytes(b"id,name\n" + b"\x00\x01\xff" * 100)
    (simple.stage / "a.csv.gz").write_bytes(b"no gzip at all")
    options = {
        "on_error": on_error(policy),
        "schema": pa.schema([("id", pa.int64()), ("other", pa.int64())]),
        "format": build_format("csv", {}),
        "pattern": ".*gz",
    }
    report = simple.load(**options)
    assert report.failed
    assert not any("made" in note for note in report.notes)
    assert not is_there(simple)
    assert data_left(simple) == set()


def test_a_wrong_schema_does_not_outlive_its_load(simple: Place) -> None:
    """A first command that took the file for something else leaves nothing behind."""
    simple.stage.mkdir()
    (simple.stage / "a.csv").write_text("id;name\n1;a\n2;b\n3\n")
    with pytest.raises(CalqueError):
        simple.load(format=build_format("csv", {"header": True, "delimiter": ";"}))
    assert not is_there(simple)
    (simple.stage / "a.csv").write_text("id;name\n1;a\n2;b\n")
    simple.load(format=build_format("csv", {"header": True, "delimiter": ";"}))
    assert rows(simple).column_names == ["id", "name"]


BEFORE = STEPS[: STEPS.index("table.after")]


def _by_default(kind: str, step: str, action: str) -> bool:
    """Every step is killed with one kind of table and fails with the other; then they change."""
    return (KINDS.index(kind) + BEFORE.index(step)) % 2 == (action == "kill")


@pytest.mark.parametrize(
    ("simple", "step", "action"),
    [
        pytest.param(*case, marks=() if _by_default(*case) else pytest.mark.soak)
        for case in product(KINDS, BEFORE, ("kill", "error"))
    ],
    indirect=["simple"],
)
def test_a_first_load_that_dies_leaves_no_table(simple: Place, step: str, action: str) -> None:
    """Stopped before the table is made there is none; the next load has a free hand."""
    expected = write_files(simple.stage, 2)
    assert run(simple, "victim", f"{step}:{action}") != 0
    assert not is_there(simple)
    schema = pa.schema([("id", pa.int32()), ("name", pa.string())])
    assert run(simple, "again", schema=schema) == 0
    assert rows(simple).schema.field("id").type == pa.int32()
    assert_settled(simple, expected)


def test_a_table_that_is_just_made_is_filled(simple: Place) -> None:
    """Killed between making the table and its first commit, the load is finished by the next."""
    expected = write_files(simple.stage, 2)
    assert run(simple, "victim", "table.after:kill") != 0
    assert is_there(simple)
    report = simple.load()
    assert report.recovered
    assert ids(simple).total() == len(expected)
    assert_settled(simple, expected)


def test_batches_of_a_first_load(simple: Place) -> None:
    """A first batch without a sound file makes no table; the next one makes it."""
    simple.stage.mkdir()
    (simple.stage / "a.csv").write_text("id,name\nx,y,z\n")
    (simple.stage / "b.csv").write_text("id,name\nx,y,z\n")
    write_file(simple.stage, 1)
    write_file(simple.stage, 2)
    report = simple.load(batch_files=2, on_error=on_error("SKIP_FILE"))
    assert report.files_loaded == 2
    assert ids(simple).total() == 8


def test_what_a_table_is_made_of_lies_nowhere_else(delta: Place, tmp_path: Path) -> None:
    """The log of a new table tells its own place, not where it was prepared."""
    write_files(delta.stage, 1)
    delta.load()
    log = tmp_path / "lake" / "t" / "_delta_log"
    assert str(tmp_path) in (log / f"{0:020}.json").read_text()
    assert "calque-" not in (log / f"{0:020}.json").read_text()


@pytest.mark.parametrize(("bad", "expected"), [('{"x":[1,]}\n', (0, 1, 0)), ("", (0, 0, 1))])
def test_files_without_columns_do_not_end_a_load_that_evolves(
    delta: Place, bad: str, expected: tuple[int, int, int]
) -> None:
    """Bad files and empty ones have their own row, and the table stays as it is."""
    delta.stage.mkdir()
    (delta.stage / "a.json").write_text('{"x": 1}\n')
    assert delta.load().rows_loaded == 1
    (delta.stage / "b.json").write_text(bad)
    report = delta.load(evolve=True, match_by="name", on_error=on_error("CONTINUE"))
    assert (report.rows_loaded, report.errors, report.count(Status.EMPTY)) == expected
