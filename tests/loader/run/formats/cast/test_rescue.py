"""The rescue column: what fits no column and what has none is kept there, whole."""

from __future__ import annotations

import io
import json
from datetime import date
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from calque.loader.model.file_formats import (
    AvroFormat,
    CsvFormat,
    JsonFormat,
    OrcFormat,
    ParquetFormat,
    XmlFormat,
)
from calque.loader.run.formats.refusal import FileRefused
from tests.loader.run.formats.conftest import Read, Result

AB = [("a", pa.int64()), ("b", pa.string())]
RESCUE = "_rescued"


def rescued(result: Result) -> list[object]:
    """The rescue column, read as JSON."""
    texts = [row[RESCUE] for row in result.rows]
    return [None if text is None else json.loads(str(text)) for text in texts]


def test_csv_extra_columns_by_name(read: Read) -> None:
    """Columns of the header that the table does not have are kept by their names."""
    data = b"x,a,b,y\n7,1,p,\nq,2,r,9\n"
    result = read(data, CsvFormat(parse_header=True), AB, match="name", rescue=RESCUE)
    assert [(row["a"], row["b"]) for row in result.rows] == [(1, "p"), (2, "r")]
    assert rescued(result) == [{"x": "7", "y": ""}, {"x": "q", "y": "9"}]


def test_csv_extra_columns_by_position(read: Read) -> None:
    """Behind the last column of the table the header's names count, or positions."""
    named = CsvFormat(parse_header=True)
    assert rescued(read(b"p,q,r\n1,x,2\n", named, AB, rescue=RESCUE)) == [{"r": "2"}]
    assert rescued(read(b"p,q,r,r,\n1,x,2,3,4\n", named, AB, rescue=RESCUE)) == [
        {"r": "2", "_c4": "3", "_c5": "4"}
    ]


def test_csv_wide_records(read: Read) -> None:
    """Fields beyond the last column are kept by their position; a short record is still refused."""
    result = read(b"1,x\n2,y,z,w\n3\n", CsvFormat(), AB, rescue=RESCUE)
    assert rescued(result) == [None, {"_c3": "z", "_c4": "w"}]
    assert [error.line for error in result.errors] == [3]
    lenient = CsvFormat(error_on_column_count_mismatch=False)
    assert rescued(read(b"1,x\n2,y,z\n3\n", lenient, AB, rescue=RESCUE)) == [
        None,
        {"_c3": "z"},
        None,
    ]


def test_csv_extras_and_misfits_together(read: Read) -> None:
    """Both kinds stand in one document."""
    data = b'a,b,c\n1,x,""\nq,"y,z",5\n'
    result = read(data, CsvFormat(parse_header=True), AB, match="name", rescue=RESCUE)
    assert rescued(result) == [{"c": ""}, {"a": "q", "c": "5"}]


def test_csv_without_rescue_is_as_before(read: Read) -> None:
    """Without a rescue column an extra column is passed over by name and refused by position."""
    named = CsvFormat(parse_header=True)
    assert read(b"a,b,c\n1,x,2\n", named, AB, match="name").rows == [{"a": 1, "b": "x"}]
    with pytest.raises(FileRefused, match="3 columns, 2 are expected"):
        read(b"a,b,c\n1,x,2\n", named, AB)
    assert read(b"1,x,2\n", CsvFormat(), AB).rejected == 1


@pytest.mark.parametrize("array", [False, True])
def test_json_extra_fields(read: Read, array: bool) -> None:
    """Fields that the table does not have keep their JSON types, nested ones too."""
    objects = [
        {"a": 1, "b": "x", "c": {"d": [1, None, "é"]}, "n": None},
        {"a": 2, "b": "y"},
        {"a": "no", "b": "z", "f": 1.5, "t": True},
    ]
    text = json.dumps(objects) if array else "\n".join(map(json.dumps, objects))
    format = JsonFormat(strip_outer_array=array)
    result = read(text.encode(), format, AB, match="name_insensitive", rescue=RESCUE)
    assert [row["a"] for row in result.rows] == [1, 2, None]
    assert rescued(result) == [
        {"c": {"d": [1, None, "é"]}},
        None,
        {"a": "no", "f": 1.5, "t": True},
    ]


def test_json_column_list(read: Read) -> None:
    """A field that the statement's column list leaves out is rescued, not lost."""
    result = read(
        b'{"a": 1, "b": "x"}\n', JsonFormat(), AB, match="name", columns=("a",), rescue=RESCUE
    )
    assert result.rows == [{"a": 1, "b": None, RESCUE: '{"b": "x"}'}]


def test_numbers_are_exact(read: Read) -> None:
    """A number that a double does not hold is kept as text; a long value is not cut."""
    long = "v" * 5000
    data = f'{{"a": "{long}", "b": "x", "c": 0.1, "d": 1.00000000000000000001}}\n'.encode()
    result = read(data, JsonFormat(), AB, match="name", rescue=RESCUE)
    assert rescued(result) == [{"a": long, "c": 0.1, "d": "1.00000000000000000001"}]


TABLE = pa.table(
    {
        "a": pa.array([1, 2], pa.int64()),
        "b": ["x", "y"],
        "when": [date(2026, 1, 2), None],
        "money": [Decimal("1.25"), None],
        "odd": [float("nan"), None],
        "list": pa.array([[1, 2], None], pa.list_(pa.int64())),
    }
)
EXTRA = [{"when": "2026-01-02", "money": 1.25, "odd": "NaN", "list": [1, 2]}, None]


def test_parquet_extra_columns(read: Read) -> None:
    """Columns that the table does not have are kept, NULLs apart; by name and by position."""
    out = io.BytesIO()
    pq.write_table(TABLE, out)
    for match in ("name", "position"):
        result = read(out.getvalue(), ParquetFormat(), AB, match=match, rescue=RESCUE)
        assert [row["a"] for row in result.rows] == [1, 2]
        assert rescued(result) == EXTRA
    with pytest.raises(FileRefused, match="6 columns, 2 are expected"):
        read(out.getvalue(), ParquetFormat(), AB, match="position")


def test_orc_extra_columns(read: Read) -> None:
    """The same for ORC."""
    out = io.BytesIO()
    orc.write_table(TABLE, out)
    result = read(out.getvalue(), OrcFormat(), AB, match="name", rescue=RESCUE)
    assert rescued(result) == EXTRA


def test_avro_extra_fields(read: Read) -> None:
    """The same for Avro."""
    fields = [("a", "long"), ("b", "string"), ("c", ["null", "string"])]
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"a": 1, "b": "x", "c": "z"}, {"a": 2, "b": "y", "c": None}])
    result = read(out.getvalue(), AvroFormat(), AB, match="name", rescue=RESCUE)
    assert rescued(result) == [{"c": "z"}, None]


def test_xml_extra_elements(read: Read) -> None:
    """The same for XML: elements and attributes without a column."""
    data = b'<t><row id="7"><a>1</a><b>x</b><c>z</c></row><row><a>2</a><b>y</b></row></t>'
    result = read(data, XmlFormat(), AB, match="name", rescue=RESCUE)
    assert rescued(result) == [{"_id": "7", "c": "z"}, None]


def test_hexadecimal_is_no_integer(read: Read) -> None:
    """Text that pyarrow would take for a number is refused in every format with strict text."""
    xml = read(b"<t><row><a>0x1F</a></row><row><a>0X1f</a></row></t>", XmlFormat(), AB)
    assert xml.rows == []
    assert [error.value for error in xml.errors] == ["0x1F", "0X1f"]
    out = io.BytesIO()
    pq.write_table(pa.table({"a": ["0x1F", "7"], "b": ["x", "y"]}), out)
    columnar = read(out.getvalue(), ParquetFormat(), AB, match="name")
    assert columnar.rows == [{"a": 7, "b": "y"}]
    assert read(b'{"a": "0x1F"}\n', JsonFormat(), AB, match="name").rejected == 1
