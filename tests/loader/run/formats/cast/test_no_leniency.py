"""What a library would take for a value and is none: hexadecimals, NaN in JSON, doubled keys."""

from __future__ import annotations

import io
import math
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calque.loader.model.file_formats import CsvFormat, JsonFormat, ParquetFormat, XmlFormat
from calque.loader.run.formats import Code, FileRefused
from calque.loader.run.infer import infer_schema
from tests.loader.run.formats.conftest import Read, Stage

TWO = [("a", pa.int64()), ("b", pa.string())]
JSON = {"match": "name", "name": "f.json"}


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint16()], ids=str)
@pytest.mark.parametrize("text", ["0xFF", "0XfF", " 0x1", "0x", "-0x1"])
@pytest.mark.parametrize("last", ["c", "c\\,"], ids=["quick", "exact"])
def test_hexadecimal_is_no_integer(read: Read, kind: pa.DataType, text: str, last: str) -> None:
    """``0xFF`` is refused by every parser; in text beside it such letters change nothing."""
    data = f"1,a\n{text},b\n2,0x text\n3,{last}\n".encode()
    result = read(data, CsvFormat(escape="\\"), [("a", kind), ("b", pa.string())])
    assert [row["a"] for row in result.rows] == [1, 2, 3]
    assert [(error.line, error.code) for error in result.errors] == [(2, Code.INVALID_VALUE)]


def test_addresses_beside_integers(read: Read) -> None:
    """Text in hexadecimal is text; numbers beside it, blank lines and line numbers stay right."""
    data = b"1,0xAB\n\n2,0xCD\nx,0xEF\n" * 2
    result = read(data, CsvFormat(), TWO)
    assert [row["a"] for row in result.rows] == [1, 2, 1, 2]
    assert [error.line for error in result.errors] == [4, 8]


def test_hexadecimal_elsewhere(read: Read, stage: Stage) -> None:
    """Nor is it one in JSON text, in XML, in a list, or for inference."""
    assert read(b'{"a": "0x1F"}\n', JsonFormat(), TWO[:1], **JSON).rows == []
    xml = read(b"<r><row><a>0x1F</a></row></r>", XmlFormat(), TWO[:1], match="name")
    assert (xml.rows, len(xml.errors)) == ([], 1)
    assert read(b'"[0x1F]"\n', CsvFormat(), [("a", pa.list_(pa.int64()))]).rows == []
    found = infer_schema([stage.staged("f.csv", b"0x1F\n0x2F\n")], CsvFormat()).schema
    assert found.types == [pa.string()]


def test_int96_is_read_in_microseconds(read: Read, stage: Stage) -> None:
    """Moments before 1678 and after 2262, as Impala and old Spark write them, are themselves."""
    moments = [datetime(1, 1, 1), datetime(2024, 5, 6, 7, 8, 9, 123456), datetime(9999, 12, 31)]
    out = io.BytesIO()
    table = pa.table({"t": pa.array(moments, pa.timestamp("us"))})
    pq.write_table(table, out, use_deprecated_int96_timestamps=True)
    found = infer_schema([stage.staged("f.parquet", out.getvalue())], ParquetFormat()).schema
    assert found.field("t").type == pa.timestamp("us")
    rows = read(out.getvalue(), ParquetFormat(), [("t", pa.timestamp("us"))]).rows
    assert [row["t"] for row in rows] == moments


KEYED = pa.map_(pa.string(), pa.int64())


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"k":1,"k":2}', KEYED),
        ('{"x":1,"x":1}', pa.struct([("x", pa.int64())])),
        ('[{"k":1,"k":2}]', pa.list_(KEYED)),
    ],
)
def test_doubled_keys_are_refused_from_both(read: Read, text: str, kind: pa.DataType) -> None:
    """A key that stands there twice has no one value: not in JSON, not in a CSV field."""
    quoted = text.replace('"', '""')
    csv = read(f'"{quoted}"\n'.encode(), CsvFormat(), [("v", kind)])
    json = read(f'{{"v":{text}}}\n'.encode(), JsonFormat(), [("v", kind)], **JSON)
    assert (csv.rows, len(csv.errors)) == ([], 1)
    assert (json.rows, len(json.errors)) == ([], 1)


@pytest.mark.parametrize("array", [False, True], ids=["lines", "array"])
@pytest.mark.parametrize("value", ["NaN", "[NaN]", '{"a": -Infinity}', '{"a": [1, Infinity]}'])
def test_nan_is_no_json(read: Read, value: str, array: bool) -> None:
    """What is kept as text is JSON: NaN and Infinity are refused there; doubles take them."""
    data = f'{{"v": {value}}}\n{{"v": 1.0}}\n'
    text = f"[{data.strip().replace(chr(10), ',')}]" if array else data
    format = JsonFormat(strip_outer_array=array)
    result = read(text.encode(), format, [("v", pa.string())], **JSON)
    assert result.rows == [{"v": "1.0"}]
    assert [error.code for error in result.errors] == [Code.INVALID_VALUE]
    if value == "NaN":
        rows = read(text.encode(), format, [("v", pa.float64())], **JSON).rows
        assert [math.isnan(row["v"]) for row in rows] == [True, False]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["[,]", "[,{}]", '[{"a":1},]', '[{"a":1},,{"a":2}]', '[{"a":1}{"a":2}]', '[{"a":1}', "["],
)
def test_an_array_has_its_commas(read: Read, text: str) -> None:
    """Commas stand between objects, one each; else the file is refused."""
    with pytest.raises(FileRefused):
        read(text.encode(), JsonFormat(strip_outer_array=True), TWO[:1], **JSON)


@pytest.mark.parametrize("text", ["[]", " [ ] ", '[{"a":1}]', '[ {"a":1} , {"a":2} ]\n'])
def test_a_sound_array(read: Read, text: str) -> None:
    """Spaces and line ends may stand anywhere between."""
    result = read(text.encode(), JsonFormat(strip_outer_array=True), TWO[:1], **JSON)
    assert len(result.rows) == text.count("{")
