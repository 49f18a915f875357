"""Parquet, ORC and Avro: by name and position, strict casts, files that are something else."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from calque.loader.model.file_formats import (
    AvroFormat,
    FormatOptions,
    OrcFormat,
    ParquetFormat,
)
from calque.loader.run.formats import FileRefused
from tests.loader.run.formats.conftest import Read

TABLE = pa.table({"A": pa.array([1, 2, None], pa.int32()), "b": ["x", "y", "z"]})
AB = [("a", pa.int64()), ("b", pa.string())]
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "A", "type": ["null", "int"]}, {"name": "b", "type": "string"}],
}


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def as_orc(table: pa.Table) -> bytes:
    out = io.BytesIO()
    orc.write_table(table, out)
    return out.getvalue()


def avro(table: pa.Table, schema: dict[str, object] | None = None) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema or AVRO, table.to_pylist())
    return out.getvalue()


CASES = [
    (ParquetFormat(), parquet(TABLE)),
    (OrcFormat(), as_orc(TABLE)),
    (AvroFormat(), avro(TABLE)),
]
KINDS = [format.kind for format, _ in CASES]


@pytest.mark.parametrize(("format", "data"), CASES, ids=KINDS)
def test_by_name_and_position(read: Read, format: FormatOptions, data: bytes) -> None:
    """Columns are found by name in any case, or by position; types are widened."""
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": None, "b": "z"}]
    assert read(data, format, AB, match="name_insensitive").rows == rows
    assert read(data, format, AB, match="position").rows == rows


@pytest.mark.parametrize(("format", "data"), CASES, ids=KINDS)
def test_missing_column(read: Read, format: FormatOptions, data: bytes) -> None:
    """A column the file lacks refuses it, unless told to be NULL."""
    fields = [*AB, ("c", pa.string())]
    with pytest.raises(FileRefused, match="'c'"):
        read(data, format, fields, match="name_insensitive")
    lenient = type(format)(missing_field="null")  # type: ignore[call-arg]
    assert read(data, lenient, fields, match="name_insensitive").rows[0]["c"] is None


@pytest.mark.parametrize(("format", "data"), CASES, ids=KINDS)
def test_not_that_format(read: Read, format: FormatOptions, data: bytes) -> None:
    """A file that is something else, or was cut off, is refused by name."""
    for wrong in (b"1,x\n" * 50, b"PAR1" + b"x" * 100, data[: len(data) // 2]):
        with pytest.raises(FileRefused):
            read(wrong, format, AB, match="name_insensitive")


def test_strict_casts(read: Read) -> None:
    """Rows with values that do not fit unchanged are refused by record number."""
    table = pa.table({"a": [1.0, 2.5, 3.0], "b": ["x", "y", "z"]})
    result = read(parquet(table), ParquetFormat(), AB, match="name")
    assert [row["a"] for row in result.rows] == [1, 3]
    (error,) = result.errors
    assert (error.record, error.line, error.column, error.value) == (2, 0, "a", "2.5")


def test_zone_rule(read: Read) -> None:
    """A timestamp without a zone becomes one with a zone only by a stated rule."""
    moment = datetime(2024, 7, 1, 12)
    data = parquet(pa.table({"t": pa.array([moment], pa.timestamp("us"))}))
    fields = [("t", pa.timestamp("us", "UTC"))]
    assert read(data, ParquetFormat(), fields, match="name").rows == []
    told = ParquetFormat(time_zone="Europe/Paris")
    assert read(data, told, fields, match="name").rows == [
        {"t": datetime(2024, 7, 1, 10, tzinfo=UTC)}
    ]


@pytest.mark.parametrize(
    ("kind", "values", "target", "kept"),
    [
        (
            pa.list_(pa.float64()),
            [[1.5], None, [0.1], [1e300]],
            pa.list_(pa.float32()),
            [[1.5], None],
        ),
        (pa.list_(pa.float64()), [[1.5], [2.0]], pa.list_(pa.decimal128(9, 0)), [[2]]),
        (pa.list_(pa.timestamp("us")), [[1], []], pa.list_(pa.timestamp("us", "UTC")), [[]]),
        (
            pa.struct([("x", pa.int64()), ("y", pa.bool_())]),
            [{"x": 1, "y": None}, {"x": 2**40, "y": None}, {"x": 1, "y": True}, None],
            pa.struct([("y", pa.int8()), ("x", pa.int32())]),
            [{"y": None, "x": 1}, None],
        ),
        (
            pa.map_(pa.string(), pa.int64()),
            [[("k", 2**40)], None, [("k", 5), ("l", None)]],
            pa.map_(pa.string(), pa.int32()),
            [None, [("k", 5), ("l", None)]],
        ),
    ],
)
def test_nested_casts_are_strict(
    read: Read, kind: pa.DataType, values: list[object], target: pa.DataType, kept: list[object]
) -> None:
    """Inside lists, structs and maps nothing is rounded, cut or given a zone."""
    data = parquet(pa.table({"a": pa.array(values, kind)}))
    result = read(data, ParquetFormat(), [("a", target)], match="name")
    assert [row["a"] for row in result.rows] == kept
    assert result.rejected == len(values) - len(kept)


def test_one_name_twice(read: Read) -> None:
    """A file with two columns of one name is refused in words."""
    table = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    with pytest.raises(FileRefused, match="two columns are named 'a'"):
        read(parquet(table), ParquetFormat(), AB)
