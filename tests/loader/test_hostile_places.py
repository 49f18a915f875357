"""Names that libraries misread: no row goes astray, and no reader is told another value."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars.exceptions import PolarsError

import calque
from calque.config import Settings
from calque.errors import CalqueError, InvalidInput, NotFound, Unsupported
from calque.loader.commit.tables.errors import DELTA, map_errors
from calque.loader.look.table_summary import summarise_table
from calque.loader.run.writing.partition import folder_of
from tests.loader.loader import Place
from tests.loader.world import write_files


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger of the test's own."""
    monkeypatch.setenv("CALQUE_LEDGER_URL", str(tmp_path / "l.db"))


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ("lake/a%20b", "%20"),
        ("lake/a%41", "%41"),
        ("lake/a\\b", "\\\\"),
        ("lake/a\nb", "\\n"),
        ("s3://box/a#b", "#"),
        ("s3://box/a?b", "?"),
        ("iceberg:lake/a#b", "#"),
        ("iceberg:la?ke/t", "?"),
    ],
)
def test_places_that_a_library_misreads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, named: str
) -> None:
    """They are refused before anything is made: commits would go into the log of another table."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path / "in", 1)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(Unsupported) as told:
        calque.load("in/", into=table, progress=False)
    assert f"{named}' in a path" in told.value.message
    assert {one for one in tmp_path.rglob("*") if one.name != "l.db"} == before


def test_what_is_no_table(tmp_path: Path) -> None:
    """A folder without a log and a file are told as what they are."""
    (tmp_path / "x.csv").write_text("a\n")
    with pytest.raises(NotFound, match="there is no Delta table at"):
        summarise_table(str(tmp_path), Settings())
    with pytest.raises(NotFound, match="there is no Delta table at"):
        summarise_table(str(tmp_path / "nowhere"), Settings())
    with pytest.raises(InvalidInput, match="is a file, and no table"):
        summarise_table(str(tmp_path / "x.csv"), Settings())


def test_a_panic_of_a_library_is_an_error_of_ours() -> None:
    """Rust's panics are no exceptions of Python: they too have to stop at the edge."""

    class PanicException(BaseException):
        pass

    told = "table t: PanicException: out of order"
    with pytest.raises(CalqueError, match=told), map_errors(DELTA, "t"):
        raise PanicException("out of order")
    with pytest.raises(KeyboardInterrupt), map_errors(DELTA, "t"):
        raise KeyboardInterrupt


def test_a_path_that_looks_like_a_glob(tmp_path: Path) -> None:
    """A path that is there is that file or folder, whatever characters it has."""
    folder = tmp_path / "in[1]{2}"
    folder.mkdir()
    for name in ("[x].csv", "{y}.csv", "a*b.csv", "axb.csv"):
        (folder / name).write_text("id\n1\n")
    into = str(tmp_path / "t")

    def names(*places: Path) -> list[str]:
        stage = places[0] if len(places) == 1 else places
        report = calque.load(stage, into=into, progress=False, force=True)
        return sorted(row.name for row in report.rows())

    assert names(folder / "[x].csv") == ["[x].csv"]
    assert names(folder / "a*b.csv") == ["a*b.csv"]
    assert names(folder / "{y}.csv", folder / "a*b.csv") == ["a*b.csv", "{y}.csv"]
    assert names(folder) == ["[x].csv", "a*b.csv", "axb.csv", "{y}.csv"]


def test_a_long_partition_value_is_told_to_no_reader_as_another(delta: Place) -> None:
    """polars believes the names of folders: one is whole, or cannot be taken for a value."""
    delta.stage.mkdir()
    values = ["é" * 40, "x" * 250, "short"]
    rows = pa.table({"id": [1, 2, 3], "x": values})
    pq.write_table(rows, delta.stage / "a.parquet")
    delta.load(partition_by=("x",))
    lake = str(delta.folder / "lake" / "t")
    assert sorted(pl.read_delta(lake)["x"].to_list()) == sorted(values)
    longer = pa.table({"id": [4], "x": ["y" * 400]})
    pq.write_table(longer, delta.stage / "b.parquet")
    assert delta.load().rows_loaded == 1
    told = delta.delta_table().to_pyarrow_table()
    assert sorted(told.column("x").to_pylist()) == sorted([*values, "y" * 400])
    with pytest.raises(PolarsError):
        pl.read_delta(lake)


def test_folders_of_partitions() -> None:
    """No name is longer than file systems take, no path than object stores."""
    assert folder_of(["a"], ("x" * 253,)) == f"a={'x' * 253}/"
    assert "=" not in folder_of(["a"], ("x" * 254,))
    deep = folder_of(list("abcdefgh"), ("y" * 200,) * 8)
    assert len(deep) < 650
    assert deep.count("/") == 8
    assert folder_of(["n"], (None,)) == "n=__HIVE_DEFAULT_PARTITION__/"


def test_small_decimals_as_partitions(delta: Place) -> None:
    """The log spells them without an exponent, which not every reader knows."""
    delta.stage.mkdir()
    kind = pa.decimal128(12, 7)
    rows = pa.table({"id": [1], "x": pa.array([Decimal("0.0000001")], kind)})
    pq.write_table(rows, delta.stage / "a.parquet")
    delta.load(partition_by=("x",))
    (file,) = delta.delta_table().file_uris()
    assert "/x=0.0000001/" in file
    assert delta.delta_table().to_pyarrow_table().column("x").to_pylist() == [Decimal("0.0000001")]
