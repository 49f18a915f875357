"""Statistics in a table's log let readers pass over files, and never over a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
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
    "digits": (
        pa.decimal128(38, 0),
        [[Decimal(10**38 - 1), Decimal(1 - 10**38)], [Decimal(0)], [None]],
    ),
    "fraction": (
        pa.decimal128(38, 38),
        [[Decimal("0." + "9" * 38), Decimal("1e-38")], [Decimal("-0." + "9" * 38), None]],
    ),
    "zeros": (pa.float64(), [[0.0, 1.0], [-0.0, -1.0], [-0.0], [0.0, -0.0]]),
    "bytes": (pa.binary(), [[b"", b"\xff" * 40], [b"\x00", b"\x80"], [None]]),
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


Columns = Mapping[str, tuple[pa.DataType, list[list[Any]]]]


class Lake:
    """A table with columns beside ``id``, and the rows of its data files."""

    def __init__(self, place: Place, columns: Columns) -> None:
        self.place = place
        place.stage.mkdir()
        kinds = {name: kind for name, (kind, _) in columns.items()}
        schema = pa.schema([("id", pa.int64()), *kinds.items()])
        number, tables = 0, []
        for index, values in enumerate(
            even_out({name: some for name, (_, some) in columns.items()})
        ):
            rows = len(next(iter(values.values())))
            made = {name: pa.array(some, kinds[name]) for name, some in values.items()}
            made["id"] = pa.array(range(number, number + rows), pa.int64())
            number += rows
            tables.append(pa.table(made, schema))
            pq.write_table(tables[-1], place.stage / f"{index}.parquet")
            assert place.load(schema=schema).files_loaded == 1
        self.rows = pa.concat_tables(tables)


def even_out(columns: Mapping[str, list[list[Any]]]) -> list[dict[str, list[Any]]]:
    """Files with values of every column: shorter ones tell their last value, or file, again.

    So a file has the bounds that it would have in a table of this column alone.
    """
    count = max(map(len, columns.values()))
    files = []
    for index in range(count):
        mine = {name: files[min(index, len(files) - 1)] for name, files in columns.items()}
        rows = max(map(len, mine.values()))
        files.append(
            {name: [*some, *[some[-1]] * (rows - len(some))] for name, some in mine.items()}
        )
    return files


def filters(files: list[list[Any]], *, nan: bool = True) -> Iterator[tuple[str, Any]]:
    """Every operator with every value that the files hold; NaN where it can be compared with."""
    values = {str(one): one for file in files for one in file if one is not None}
    if not nan:
        values.pop("nan", None)
    for operator in OPERATORS[:4]:
        yield from ((operator, value) for value in values.values())
    yield "null", None
    yield "valid", None


def arrow_filter(name: str, operator: str, value: Any, kind: pa.DataType) -> ds.Expression:
    field = ds.field(name)
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


def polars_filter(name: str, operator: str, value: Any, kind: pa.DataType) -> pl.Expr:
    column = pl.col(name)
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


def make_lake(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp(kind)
    return Lake(Place(folder, kind, str(folder / "ledger.db")), VALUES)


@pytest.fixture(scope="module")
def delta_lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A column of each type; its readers share it, and alter nothing."""
    return make_lake("delta", tmp_path_factory)


@pytest.fixture(scope="module")
def iceberg_lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The same as a table of the other kind."""
    return make_lake("iceberg", tmp_path_factory)


def test_deltalakes_dataset(delta_lake: Lake, values: str) -> None:
    """A filtered dataset has the rows of a full scan, whatever type is filtered by."""
    kind, files = VALUES[values]
    dataset = delta_lake.place.delta_table().to_pyarrow_dataset()
    for operator, value in filters(files, nan=False):
        chosen = arrow_filter(values, operator, value, kind)
        assert ids(dataset.to_table(["id"], filter=chosen)) == ids(
            delta_lake.rows.filter(chosen)
        ), str(chosen)


def test_deltalakes_filters(delta_lake: Lake, values: str) -> None:
    """``filters=`` of deltalake find the rows of a full scan."""
    kind, files = VALUES[values]
    table = delta_lake.place.delta_table()
    for operator, value in filters(files, nan=False):
        if operator in ("null", "valid"):
            continue
        found = table.to_pyarrow_table(
            columns=["id"], filters=[(values, operator, pa.scalar(value, kind))]
        )
        wanted = delta_lake.rows.filter(arrow_filter(values, operator, value, kind))
        assert ids(found) == ids(wanted), (operator, value)


def test_polars_on_delta(delta_lake: Lake, values: str) -> None:
    """polars, for which NaN is above all numbers, finds the rows of a full scan."""
    kind, files = VALUES[values]
    whole = pl.LazyFrame(pl.from_arrow(delta_lake.rows))
    scanned = pl.scan_delta(str(delta_lake.place.folder / "lake" / "t"))
    for operator, value in filters(files):
        chosen = polars_filter(values, operator, value, kind)
        assert polars_ids(scanned, chosen) == polars_ids(whole, chosen), (operator, value)


def test_duckdb_on_delta(delta_lake: Lake, values: str) -> None:
    """DuckDB over deltalake's dataset finds the rows of a full scan."""
    _, files = VALUES[values]
    with duckdb.connect() as connection:
        connection.register("scanned", delta_lake.place.delta_table().to_pyarrow_dataset())
        connection.register("whole", delta_lake.rows)
        check_sql(connection, values, files)


def check_sql(connection: duckdb.DuckDBPyConnection, name: str, files: list[list[Any]]) -> None:
    words = {"==": "= ?", "null": "IS NULL", "valid": "IS NOT NULL"}
    for operator, value in filters(files):
        where = f'"{name}" {words.get(operator, f"{operator} ?")}'
        bound = [value] if "?" in where else []
        found, wanted = (
            connection.execute(f"SELECT id FROM {one} WHERE {where} ORDER BY id", bound).fetchall()
            for one in ("scanned", "whole")
        )
        assert found == wanted, (where, value)


def test_a_checkpoint_changes_nothing(delta: Place) -> None:
    """Statistics that a checkpoint took over hide no row either."""
    lake = Lake(delta, {"x": (pa.float64(), FLOATS)})
    delta.delta_table().create_checkpoint()
    dataset = delta.delta_table().to_pyarrow_dataset()
    for operator, value in filters(FLOATS, nan=False):
        chosen = arrow_filter("x", operator, value, pa.float64())
        assert ids(dataset.to_table(["id"], filter=chosen)) == ids(lake.rows.filter(chosen)), str(
            chosen
        )


def test_files_are_still_passed_over(delta: Place) -> None:
    """A column with an infinite bound keeps its finite one, and other columns keep theirs."""
    Lake(delta, {"x": (pa.float64(), [[1.0, 2.0], [INF, 3.0]])})
    dataset = delta.delta_table().to_pyarrow_dataset()
    assert len(list(dataset.get_fragments(ds.field("x") < 2.5))) == 1
    assert len(list(dataset.get_fragments(ds.field("id") == 3))) == 1


def test_structs_that_are_null(delta: Place) -> None:
    """deltalake's dataset takes a struct for valid where the file has bounds of anything."""
    kind = pa.struct([("x", pa.float64()), ("y", pa.list_(pa.int64()))])
    files = [[{"x": 1.0, "y": [1]}, {"x": 2.0, "y": None}], [{"x": NAN, "y": []}, None], [None]]
    lake = Lake(delta, {"s": (kind, files), "a.b": (kind, files)})
    dataset = delta.delta_table().to_pyarrow_dataset()
    for name in ("s", "a.b"):
        for chosen in (ds.field(name).is_null(), ds.field(name).is_valid()):
            assert ids(dataset.to_table(["id"], filter=chosen)) == ids(lake.rows.filter(chosen))
    assert len(list(dataset.get_fragments(ds.field("id") == 4))) == 2, "the whole one has bounds"


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


def iceberg_filter(name: str, operator: str, value: Any) -> BooleanExpression:
    if isinstance(value, date):  # or a moment, which is one too
        value = value.isoformat()
    made: dict[str, Callable[[], BooleanExpression]] = {
        "==": lambda: EqualTo(name, value),
        "<": lambda: LessThan(name, value),
        ">": lambda: GreaterThan(name, value),
        ">=": lambda: GreaterThanOrEqual(name, value),
        "null": lambda: IsNull(name),
        "valid": lambda: NotNull(name),
    }
    return made[operator]()


def test_pyiceberg(iceberg_lake: Lake, values: str) -> None:
    """pyiceberg's scans find the rows of a full scan."""
    kind, files = VALUES[values]
    table = iceberg_lake.place.iceberg_table()
    assert ids(table.scan(row_filter=AlwaysTrue()).to_arrow()) == ids(iceberg_lake.rows)
    for operator, value in filters(files, nan=False):
        if kind == pa.float32() and value in (INF, -INF):
            continue  # pyiceberg takes them for doubles that no float can equal
        found = table.scan(iceberg_filter(values, operator, value), ("id",)).to_arrow()
        wanted = iceberg_lake.rows.filter(arrow_filter(values, operator, value, kind))
        assert ids(found) == ids(wanted), (operator, value)


def test_polars_on_iceberg(iceberg_lake: Lake, values: str) -> None:
    """polars, for which NaN is above all numbers, finds the rows of a full scan."""
    kind, files = VALUES[values]
    whole = pl.LazyFrame(pl.from_arrow(iceberg_lake.rows))
    scanned = pl.scan_iceberg(iceberg_lake.place.iceberg_table())
    for operator, value in filters(files):
        chosen = polars_filter(values, operator, value, kind)
        assert polars_ids(scanned, chosen) == polars_ids(whole, chosen), (operator, value)


def test_duckdb_on_iceberg(iceberg_lake: Lake, values: str) -> None:
    """DuckDB over the data files that a scan plans finds the rows of a full scan."""
    _, files = VALUES[values]
    paths = [task.file.file_path for task in iceberg_lake.place.iceberg_table().scan().plan_files()]
    with duckdb.connect() as connection:
        connection.register("scanned", ds.dataset([one.removeprefix("file://") for one in paths]))
        connection.register("whole", iceberg_lake.rows)
        check_sql(connection, values, files)
