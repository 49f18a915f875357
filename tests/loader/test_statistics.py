"""Statistics in a table's log let readers pass over files, and never over a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import (
    AlwaysTrue,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    IsNull,
    LessThan,
    NotNull,
)

from tests.loader.loader import Place

INF, NAN = math.inf, math.nan
LONG = "z" * 40

FLOATS = [[1.0, 2.0], [INF, 3.0], [-INF, 4.0], [-INF, INF], [5.0, NAN], [NAN], [None], [6.0, None]]
MOMENTS = [
    [datetime(2026, 1, 1, 12, 0, 0, 1), datetime(2026, 1, 1, 12, 0, 0, 999)],
    [datetime.min, datetime(1969, 12, 31, 23, 59, 59, 999999)],
    [datetime.max, None],
    [None],
]
VALUES: dict[str, tuple[pa.DataType, list[list[Any]]]] = {
    "double": (pa.float64(), FLOATS),
    "float": (pa.float32(), FLOATS),
    "long": (pa.int64(), [[1, 2], [2**63 - 1, -(2**63)], [None], [3, None]]),
    "decimal": (
        pa.decimal128(38, 4),
        [[Decimal("1.5000"), Decimal("9" * 34 + ".9999")], [Decimal("-0.0001"), None], [None]],
    ),
    "boolean": (pa.bool_(), [[True], [False], [True, False], [None], [True, None]]),
    "date": (pa.date32(), [[date(2026, 1, 1)], [date.min, date.max], [None]]),
    "time": (pa.timestamp("us"), MOMENTS),
    "moment": (
        pa.timestamp("us", "UTC"),
        [[one and one.replace(tzinfo=UTC) for one in file] for file in MOMENTS],
    ),
    "text": (
        pa.string(),
        [["a", "é"], [LONG, LONG + "a"], ["\U0010ffff" * 40, ""], ["a\x00b", '"\\'], [None]],
    ),
}
OPERATORS = ("==", "<", ">", ">=", "null", "valid")


class Lake:
    """A table of one column ``x`` beside ``id``, and the rows of its data files."""

    def __init__(self, place: Place, kind: pa.DataType, files: list[list[Any]]) -> None:
        self.place = place
        place.stage.mkdir()
        schema = pa.schema([("id", pa.int64()), ("x", kind)])
        number, tables = 0, []
        for index, values in enumerate(files):
            ids = list(range(number, number + len(values)))
            number += len(values)
            tables.append(pa.table({"id": ids, "x": pa.array(values, kind)}, schema))
            pq.write_table(tables[-1], place.stage / f"{index}.parquet")
            assert place.load(schema=schema).files_loaded == 1
        self.rows = pa.concat_tables(tables)


def filters(files: list[list[Any]], *, nan: bool = True) -> Iterator[tuple[str, Any]]:
    """Every operator with every value that the files hold; NaN where it can be compared with."""
    values = {str(one): one for file in files for one in file if one is not None}
    if not nan:
        values.pop("nan", None)
    for operator in OPERATORS[:4]:
        yield from ((operator, value) for value in values.values())
    yield "null", None
    yield "valid", None


def arrow_filter(operator: str, value: Any, kind: pa.DataType) -> ds.Expression:
    field = ds.field("x")
    if operator in ("null", "valid"):
        return field.is_null() if operator == "null" else field.is_valid()
    scalar = pa.scalar(value, kind)
    made: dict[str, ds.Expression] = {
        "==": field == scalar,
        "<": field < scalar,
        ">": field > scalar,
        ">=": field >= scalar,
    }
    return made[operator]


def polars_filter(operator: str, value: Any, kind: pa.DataType) -> pl.Expr:
    column = pl.col("x")
    if operator in ("null", "valid"):
        return column.is_null() if operator == "null" else column.is_not_null()
    scalar = pl.lit(pl.Series(pl.from_arrow(pa.array([value], kind)))).first()
    made = {
        "==": column == scalar,
        "<": column < scalar,
        ">": column > scalar,
        ">=": column >= scalar,
    }
    return made[operator]


def ids(table: pa.Table) -> list[int]:
    return sorted(table.column("id").to_pylist())


def polars_ids(frame: pl.LazyFrame, chosen: pl.Expr) -> list[int]:
    return sorted(frame.filter(chosen).select("id").collect()["id"].to_list())


@pytest.fixture(params=VALUES)
def values(request: pytest.FixtureRequest) -> str:
    """A type, by its name; the values of its files strain its bounds."""
    name: str = request.param
    return name


MakeLake = Callable[[str, str], Lake]


@pytest.fixture(scope="module")
def lake_of(tmp_path_factory: pytest.TempPathFactory) -> MakeLake:
    """A table of a kind with the values of a type; its readers share it, and alter nothing."""

    @cache
    def make(kind: str, name: str) -> Lake:
        folder = tmp_path_factory.mktemp(f"{kind}-{name}")
        return Lake(Place(folder, kind, str(folder / "ledger.db")), *VALUES[name])

    return make


def test_deltalakes_dataset(lake_of: MakeLake, values: str) -> None:
    """A filtered dataset has the rows of a full scan, whatever type is filtered by."""
    kind, files = VALUES[values]
    lake = lake_of("delta", values)
    dataset = lake.place.delta_table().to_pyarrow_dataset()
    for operator, value in filters(files, nan=False):
        chosen = arrow_filter(operator, value, kind)
        assert ids(dataset.to_table(filter=chosen)) == ids(lake.rows.filter(chosen)), str(chosen)


def test_deltalakes_filters(lake_of: MakeLake, values: str) -> None:
    """``filters=`` of deltalake find the rows of a full scan."""
    kind, files = VALUES[values]
    lake = lake_of("delta", values)
    table = lake.place.delta_table()
    for operator, value in filters(files, nan=False):
        if operator in ("null", "valid"):
            continue
        found = table.to_pyarrow_table(filters=[("x", operator, pa.scalar(value, kind))])
        wanted = lake.rows.filter(arrow_filter(operator, value, kind))
        assert ids(found) == ids(wanted), (operator, value)


def test_polars_on_delta(lake_of: MakeLake, values: str) -> None:
    """polars, for which NaN is above all numbers, finds the rows of a full scan."""
    kind, files = VALUES[values]
    lake = lake_of("delta", values)
    whole = pl.LazyFrame(pl.from_arrow(lake.rows))
    scanned = pl.scan_delta(str(lake.place.folder / "lake" / "t"))
    for operator, value in filters(files):
        chosen = polars_filter(operator, value, kind)
        assert polars_ids(scanned, chosen) == polars_ids(whole, chosen), (operator, value)


def test_duckdb_on_delta(lake_of: MakeLake, values: str) -> None:
    """DuckDB over deltalake's dataset finds the rows of a full scan."""
    _, files = VALUES[values]
    lake = lake_of("delta", values)
    with duckdb.connect() as connection:
        connection.register("scanned", lake.place.delta_table().to_pyarrow_dataset())
        connection.register("whole", lake.rows)
        check_sql(connection, files)


def check_sql(connection: duckdb.DuckDBPyConnection, files: list[list[Any]]) -> None:
    words = {"==": "x = ?", "null": "x IS NULL", "valid": "x IS NOT NULL"}
    for operator, value in filters(files):
        where = words.get(operator, f"x {operator} ?")
        bound = [value] if "?" in where else []
        found, wanted = (
            connection.execute(f"SELECT id FROM {one} WHERE {where} ORDER BY id", bound).fetchall()
            for one in ("scanned", "whole")
        )
        assert found == wanted, (where, value)


def test_a_checkpoint_changes_nothing(delta: Place) -> None:
    """Statistics that a checkpoint took over hide no row either."""
    lake = Lake(delta, pa.float64(), FLOATS)
    delta.delta_table().create_checkpoint()
    dataset = delta.delta_table().to_pyarrow_dataset()
    for operator, value in filters(FLOATS, nan=False):
        chosen = arrow_filter(operator, value, pa.float64())
        assert ids(dataset.to_table(filter=chosen)) == ids(lake.rows.filter(chosen)), str(chosen)


def test_files_are_still_passed_over(delta: Place) -> None:
    """A column with an infinite bound keeps its finite one, and other columns keep theirs."""
    Lake(delta, pa.float64(), [[1.0, 2.0], [INF, 3.0]])
    dataset = delta.delta_table().to_pyarrow_dataset()
    assert len(list(dataset.get_fragments(ds.field("x") < 2.5))) == 1
    assert len(list(dataset.get_fragments(ds.field("id") == 3))) == 1


def test_a_copied_file_with_nan(delta: Place) -> None:
    """A Parquet file that is loaded by copying hides no row: its footer tells nothing of NaN."""
    delta.stage.mkdir()
    kept = pa.array([float(one) for one in range(300_000)] + [NAN])
    rows = pa.table({"id": pa.array(range(300_001), pa.int64()), "x": kept})
    pq.write_table(rows, delta.stage / "big.parquet", compression="none", use_dictionary=False)
    assert delta.load().rows_loaded == 300_001
    whole = pl.LazyFrame(pl.from_arrow(rows))
    scanned = pl.scan_delta(str(delta.folder / "lake" / "t"))
    for chosen in (pl.col("x") > 1e9, pl.col("x") >= 299_999, pl.col("x").is_nan()):
        assert polars_ids(scanned, chosen) == polars_ids(whole, chosen)
    dataset = delta.delta_table().to_pyarrow_dataset()
    chosen = ds.field("x") >= 0
    assert dataset.to_table(filter=chosen).num_rows == rows.filter(chosen).num_rows


def iceberg_filter(operator: str, value: Any) -> BooleanExpression:
    if isinstance(value, date):  # or a moment, which is one too
        value = value.isoformat()
    made: dict[str, Callable[[], BooleanExpression]] = {
        "==": lambda: EqualTo("x", value),
        "<": lambda: LessThan("x", value),
        ">": lambda: GreaterThan("x", value),
        ">=": lambda: GreaterThanOrEqual("x", value),
        "null": lambda: IsNull("x"),
        "valid": lambda: NotNull("x"),
    }
    return made[operator]()


def test_pyiceberg(lake_of: MakeLake, values: str) -> None:
    """pyiceberg's scans find the rows of a full scan."""
    kind, files = VALUES[values]
    lake = lake_of("iceberg", values)
    table = lake.place.iceberg_table()
    assert ids(table.scan(row_filter=AlwaysTrue()).to_arrow()) == ids(lake.rows)
    for operator, value in filters(files, nan=False):
        if kind == pa.float32() and value in (INF, -INF):
            continue  # pyiceberg takes them for doubles that no float can equal
        found = table.scan(row_filter=iceberg_filter(operator, value)).to_arrow()
        wanted = lake.rows.filter(arrow_filter(operator, value, kind))
        assert ids(found) == ids(wanted), (operator, value)


def test_polars_on_iceberg(lake_of: MakeLake, values: str) -> None:
    """polars, for which NaN is above all numbers, finds the rows of a full scan."""
    kind, files = VALUES[values]
    lake = lake_of("iceberg", values)
    whole = pl.LazyFrame(pl.from_arrow(lake.rows))
    scanned = pl.scan_iceberg(lake.place.iceberg_table())
    for operator, value in filters(files):
        chosen = polars_filter(operator, value, kind)
        assert polars_ids(scanned, chosen) == polars_ids(whole, chosen), (operator, value)


def test_duckdb_on_iceberg(lake_of: MakeLake, values: str) -> None:
    """DuckDB over the data files that a scan plans finds the rows of a full scan."""
    _, files = VALUES[values]
    lake = lake_of("iceberg", values)
    paths = [task.file.file_path for task in lake.place.iceberg_table().scan().plan_files()]
    with duckdb.connect() as connection:
        connection.register("scanned", ds.dataset([one.removeprefix("file://") for one in paths]))
        connection.register("whole", lake.rows)
        check_sql(connection, files)
