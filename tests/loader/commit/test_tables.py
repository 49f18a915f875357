"""Tables that are made, grown and partitioned; markers; errors of the libraries."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal

import deltalake.exceptions
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyiceberg.exceptions
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.expressions import EqualTo

from calque.config import Settings, TableSettings
from calque.errors import (
    CalqueError,
    ConditionNotMatch,
    ConfigInvalid,
    DataError,
    InvalidInput,
    StatementInvalid,
    Unsupported,
)
from calque.ledger import open_ledger
from calque.ledger.tables import register_table
from calque.loader.commit.tables import Change, Mark, open_table
from calque.loader.commit.tables.errors import DELTA, ICEBERG, map_error
from calque.loader.commit.tables.stats import PREFIX, delta_stats, text_above
from calque.loader.model.data_file import ColumnStats, DataFile
from calque.loader.model.plan import MetadataColumn, MetadataKind
from calque.loader.plan.evolve import grow
from calque.loader.request.option_values import on_error
from tests.loader.loader import Place
from tests.loader.meddling import Meddling
from tests.loader.world import files_on_disk, iceberg, ids, rows, write_files

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def test_commit_is_a_compare_and_set(simple: Place) -> None:
    """Of two commits on one snapshot the second is refused; a fresh one sees the marker."""
    lake = simple.statement().lake
    lake.draft(SCHEMA, ()).publish()
    first, second = lake.open(), lake.open()
    version = first.commit(Change(load_id="A", mark=Mark.COMMITTED))
    with pytest.raises(ConditionNotMatch):
        second.commit(Change(load_id="B", mark=Mark.COMMITTED))
    fresh = lake.open()
    assert fresh.version == version
    found = fresh.marker("A", 0)
    assert found is not None
    assert (found.mark, found.version) == (Mark.COMMITTED, version)
    assert fresh.marker("B", 0) is None


def test_a_table_is_made_once(simple: Place) -> None:
    """Of several that make a table at once one makes it, and it keeps its id."""
    lakes = [simple.statement().lake for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda lake: lake.draft(SCHEMA, ()).publish(), lakes))
    first = lakes[0].open()
    assert first.version == 0
    lakes[1].draft(SCHEMA, ()).publish()
    assert lakes[2].open().table_id == first.table_id


def test_abort_marker_fences_the_load(simple: Place) -> None:
    """An aborted load is found aborted by whoever opens the table afresh."""
    lake = simple.statement().lake
    lake.draft(SCHEMA, ()).publish()
    lake.open().commit(Change(load_id="A", mark=Mark.ABORTED))
    found = lake.open().marker("A", 0)
    assert found is not None
    assert found.mark is Mark.ABORTED


def test_markers_of_finished_loads_are_dropped(simple: Place) -> None:
    """Iceberg's property of a finalised load goes with a later commit; its record stays."""
    for number in range(3):
        write_files(simple.stage, 1, first=number)
        simple.load()
    kept = simple.statement().lake.open().markers()
    assert len(kept) <= 1
    assert len(ids(simple)) == 12


def test_table_is_made_with_the_given_schema(simple: Place) -> None:
    """A given schema is the table's; values are cast to it strictly."""
    write_files(simple.stage, 1)
    schema = pa.schema([("id", pa.int32()), ("name", pa.string())])
    simple.load(schema=schema)
    assert rows(simple).schema.field("id").type == pa.int32()


def test_a_table_that_must_exist(simple: Place) -> None:
    """With create off a table that is not there is an error."""
    write_files(simple.stage, 1)
    with pytest.raises(CalqueError, match="t"):
        simple.load(create=False)


def test_partitioned_table(simple: Place) -> None:
    """A table is partitioned by column; values with odd characters find their rows again."""
    simple.stage.mkdir()
    names = ["a", "b c", "d=e", "f/g", "50%", "ä"]
    body = "id,name\n" + "".join(f"{number},{name}\n" for number, name in enumerate(names))
    (simple.stage / "x.csv").write_text(body)
    simple.load(partition_by=("name",))
    found = {row["name"]: row["id"] for row in rows(simple).to_pylist()}
    assert found == {name: number for number, name in enumerate(names)}
    body = "id,name\n" + "".join(f"{number},{name}\n" for number, name in enumerate(names, 10))
    (simple.stage / "x.csv").write_text(body)
    simple.load(on_changed="replace")
    assert ids(simple) == Counter(range(10, 16))


def test_aborted_load_leaves_no_partition_behind(simple: Place) -> None:
    """Data files of a load that was given up are removed from every partition."""
    simple.stage.mkdir()
    (simple.stage / "x.csv").write_text("id,name\n1,a\n2,b\n")
    simple.load(partition_by=("name",))
    before = files_on_disk(simple)
    (simple.stage / "y.csv").write_text("id,name\n3,a\n4,c\n")
    with pytest.raises(RuntimeError):
        simple.load(engine=Meddling(after=_fail))
    assert files_on_disk(simple) == before


def _fail() -> None:
    raise RuntimeError("after writing")


def test_partition_column_that_is_not_there(simple: Place) -> None:
    """A partition column the files do not have is refused before the table is made."""
    write_files(simple.stage, 1)
    with pytest.raises(StatementInvalid, match="country"):
        simple.load(partition_by=("country",))
    assert not (simple.folder / "lake" / "t").exists()


def test_column_list(simple: Place) -> None:
    """A column list says which columns the fields fill, in the order of the file."""
    write_files(simple.stage, 1)
    simple.load()
    (simple.stage / "swapped.csv").write_text("name,id\nzz,5555\n")
    simple.load(columns=("name", "id"), files=("swapped.csv",))
    assert {"id": 5555, "name": "zz"} in rows(simple).to_pylist()
    with pytest.raises(StatementInvalid, match="nope"):
        simple.load(columns=("nope",), force=True)


def test_metadata_columns(simple: Place) -> None:
    """File, row number, time, load id: filled for every row, and queried like any column."""
    write_files(simple.stage, 2)
    report = simple.load(
        metadata_columns=(
            MetadataColumn("source", MetadataKind.FILE),
            MetadataColumn("line", MetadataKind.ROW_NUMBER),
            MetadataColumn("load", MetadataKind.LOAD_ID),
        )
    )
    found = [row for row in rows(simple).to_pylist() if row["id"] == 102]
    assert found[0]["source"].endswith("/f00001.csv")
    assert found[0]["line"] == 3
    assert found[0]["load"] == report.load_ids[0]


def test_schema_evolution_adds_columns(simple: Place) -> None:
    """With evolution a new column is added, nullable; without it the column is left out."""
    write_files(simple.stage, 1)
    simple.load()
    (simple.stage / "wide.csv").write_text("id,name,city\n9,x,Rome\n")
    simple.load()
    assert rows(simple).column_names == ["id", "name"]
    (simple.stage / "wide.csv").write_text("id,name,city\n9,y,Roma\n")
    simple.load(evolve=True, on_changed="replace")
    found = {row["id"]: row["city"] for row in rows(simple).to_pylist()}
    assert found[9] == "Roma"
    assert found[0] is None


def test_schema_evolution_has_a_cap(simple: Place) -> None:
    """More new columns than the cap allows are refused, and the table stays as it was."""
    write_files(simple.stage, 1)
    simple.load()
    (simple.stage / "wide.csv").write_text("id,a,b,c\n9,1,2,3\n")
    with pytest.raises(DataError, match="3 new columns"):
        simple.load(evolve=True, evolve_limit=2)
    assert rows(simple).column_names == ["id", "name"]


def test_grow_widens_only_what_is_safe() -> None:
    """Integers and floats widen; a conflict of types leaves the column as it is."""
    have = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.float32())])
    found = pa.schema(
        [("A", pa.int64()), ("b", pa.int64()), ("c", pa.float64()), ("d", pa.date32())]
    )
    grown = grow(have, found, "name_insensitive", 100)
    assert grown == pa.schema(
        [("a", pa.int64()), ("b", pa.string()), ("c", pa.float64()), ("d", pa.date32())]
    )


def test_iceberg_widens(tmp_path: pytest.TempPathFactory) -> None:
    """An Iceberg column widens from int to long when files need it."""
    place = Place(tmp_path, "iceberg", f"{tmp_path}/ledger.db")  # type: ignore[arg-type]
    write_files(place.stage, 1)
    place.load(schema=pa.schema([("id", pa.int32()), ("name", pa.string())]))
    (place.stage / "big.csv").write_text(f"id,name\n{2**40},x\n")
    place.load(evolve=True)
    assert ids(place)[2**40] == 1


def test_delta_says_what_to_do_instead_of_widening(delta: Place) -> None:
    """A Delta column is not widened: the error names it, both types, and the way around."""
    write_files(delta.stage, 1)
    delta.load(schema=pa.schema([("id", pa.int32()), ("name", pa.string()), ("r", pa.string())]))
    (delta.stage / "big.csv").write_text(f"id,name\n{2**40},x\n")
    with pytest.raises(Unsupported, match="'id' cannot be widened from INT to BIGINT") as caught:
        delta.load(evolve=True)
    assert "RESCUE_COLUMN" in (caught.value.hint or "")
    assert delta.load(rescue_column="r").files_loaded == 1
    assert f'{{"id": "{2**40}"}}' in rows(delta).column("r").to_pylist()


def test_statistics_are_right(simple: Place) -> None:
    """The bounds in the table's log let readers skip files and never a row."""
    for number in range(4):
        write_files(simple.stage, 1, first=number)
        simple.load()
    if simple.kind == "delta":
        dataset = DeltaTable(str(simple.folder / "lake" / "t")).to_pyarrow_dataset()
        assert dataset.to_table(filter=ds.field("id") == 203).num_rows == 1
        stats = pa.table(
            DeltaTable(str(simple.folder / "lake" / "t")).get_add_actions(flatten=True)
        ).to_pylist()
        assert sorted((one["min.id"], one["max.id"]) for one in stats)[2] == (200, 203)
    else:
        table = iceberg(simple)
        assert len(list(table.scan(row_filter="id = 203").plan_files())) == 1
        assert table.scan(row_filter="id = 203").to_arrow().num_rows == 1


def test_delta_stats_of_every_type() -> None:
    """Bounds are exact or wider, never narrower; infinities are spelled as Spark does."""
    stamp = datetime(2026, 1, 1, 12, 0, 0, 1500, tzinfo=UTC)
    columns = {
        "i": ColumnStats(1, 1, 2),
        "s": ColumnStats(0, "a" * 40, "z" * 40),
        "d": ColumnStats(0, date(2026, 1, 1), date(2026, 1, 2)),
        "t": ColumnStats(0, stamp, stamp),
        "m": ColumnStats(0, Decimal("0.1"), Decimal("0.2")),
        "f": ColumnStats(0, float("-inf"), 1.0),
        "b": ColumnStats(0, False, True),
    }
    schema = pa.schema([(name, pa.string()) for name in columns])
    stats = json.loads(delta_stats(DataFile("x", 1, 5, columns=columns), schema))
    assert stats["numRecords"] == 5
    assert stats["nullCount"]["i"] == 1
    assert (stats["minValues"]["i"], stats["maxValues"]["i"]) == (1, 2)
    assert stats["minValues"]["s"] <= "a" * 40
    assert stats["maxValues"]["s"] >= "z" * 40
    assert stats["minValues"]["t"] == "2026-01-01T12:00:00.001Z"
    assert stats["maxValues"]["t"] == "2026-01-01T12:00:00.002Z"
    assert (stats["minValues"]["f"], stats["maxValues"]["f"]) == ("-Infinity", 1.0)


def test_delta_stats_are_whole_or_counts() -> None:
    """A column that has values and no bounds leaves the file with nothing but its count."""
    schema = pa.schema([("i", pa.int64()), ("f", pa.float64())])
    for column in (ColumnStats(0), ColumnStats(0, float("nan"), 1.0), ColumnStats(1)):
        columns = {"i": ColumnStats(0, 1, 2), "f": column}
        assert delta_stats(DataFile("x", 1, 2, columns=columns), schema) == '{"numRecords":2}'
    columns = {"i": ColumnStats(0, 1, 2), "f": ColumnStats(2)}
    stats = json.loads(delta_stats(DataFile("x", 1, 2, columns=columns), schema))
    assert stats["nullCount"] == {"i": 0, "f": 2}


def test_every_bound_that_can_be_written_is(simple: Place) -> None:
    """Rows are found by filters on decimals, booleans, long text and the end of time.

    deltalake takes a bound that is not there for NULL, and passes over the whole file.
    """
    schema = pa.schema(
        [
            ("m", pa.decimal128(20, 4)),
            ("b", pa.bool_()),
            ("t", pa.timestamp("us")),
            ("s", pa.string()),
        ]
    )
    last = datetime.max
    text = "\ud7ff" * 33
    row = {"m": Decimal("1234567890123456.7891"), "b": True, "t": last, "s": text}
    simple.stage.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([row], schema), simple.stage / "f.parquet")
    simple.load(schema=schema)
    if simple.kind == "delta":
        dataset = DeltaTable(str(simple.folder / "lake" / "t")).to_pyarrow_dataset()
        found = [dataset.to_table(filter=ds.field(name) == row[name]) for name in row]
    else:
        table = iceberg(simple)
        found = [
            table.scan(row_filter=EqualTo("m", row["m"])).to_arrow(),
            table.scan(row_filter=EqualTo("b", True)).to_arrow(),
            table.scan(row_filter=EqualTo("t", last.isoformat())).to_arrow(),
            table.scan(row_filter=EqualTo("s", text)).to_arrow(),
        ]
    assert [one.num_rows for one in found] == [1, 1, 1, 1]


@given(st.text(max_size=80) | st.text("a\ud7ff\U0010ffff", min_size=30))
def test_text_above_is_never_below(text: str) -> None:
    """A cut upper bound is not below any string it stands for."""
    bound = text_above(text)
    assert bound >= text
    assert len(bound) <= PREFIX or text.startswith("\U0010ffff" * PREFIX)


@pytest.mark.parametrize(
    ("module", "names"),
    [(deltalake.exceptions, DELTA), (pyiceberg.exceptions, ICEBERG)],
    ids=["deltalake", "pyiceberg"],
)
def test_no_library_error_is_unmapped(module: object, names: dict[str, type[CalqueError]]) -> None:
    """Every error the library names has one of ours, and the message names the table."""
    found = [
        one for _, one in inspect.getmembers(module, inspect.isclass) if issubclass(one, Exception)
    ]
    assert found
    assert {one.__name__ for one in found} <= set(names)
    for one in found:
        assert "table x" in str(map_error(one("boom"), names, "x"))


def test_names_and_spellings_of_a_table(tmp_path: pytest.TempPathFactory) -> None:
    """A name of the configuration and the path behind it are one table in the ledger."""
    place = Place(tmp_path, "delta", f"{tmp_path}/ledger.db")  # type: ignore[arg-type]
    write_files(place.stage, 1)
    place.load()
    settings = Settings(tables={"shop.sales": TableSettings(location=place.table)})
    named, plain = open_table("shop.sales", settings), open_table(place.table + "/", settings)
    with open_ledger(place.ledger) as ledger:
        found = {register_table(ledger, one.key(one.open())).number for one in (named, plain)}
    assert len(found) == 1
    with pytest.raises(ConfigInvalid, match=r"shop\.sales"):
        open_table("shop.sale", settings)
    with pytest.raises(InvalidInput, match="one level"):
        open_table(f"iceberg:{tmp_path}/deep/er.shop.sales", settings)


def test_rescue_column(simple: Place) -> None:
    """A value that does not fit its column goes to the rescue column instead of being an error."""
    write_files(simple.stage, 1)
    simple.load(rescue_column="rescued")
    (simple.stage / "odd.csv").write_text("id,name\nseven,x\n")
    report = simple.load(rescue_column="rescued", on_error=on_error("abort"))
    assert report.files_loaded == 1
    found = next(row for row in rows(simple).to_pylist() if row["name"] == "x")
    assert found["id"] is None
    assert "seven" in found["rescued"]
