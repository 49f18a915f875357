"""Values and files made to be misread: each is refused with its place, none is changed."""

from __future__ import annotations

import io
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calque.loader.model.file_formats import (
    AvroFormat,
    CsvFormat,
    JsonFormat,
    ParquetFormat,
    XmlFormat,
)
from calque.loader.run.formats import Code, FileRefused
from calque.loader.run.formats.delimited.blocks import MAX_RECORD
from calque.loader.run.infer import infer_schema
from tests.loader.run.formats.conftest import Read, Stage

HEADED = CsvFormat(parse_header=True)
JSON = {"match": "name", "name": "f.json"}
STRUCT = pa.struct([("x", pa.int64())])
MANY = "1" + "0" * 39
DEEP = "[" * 500 + "]" * 500


@pytest.mark.parametrize("quote", ["", '"'], ids=["quick", "exact"])
def test_the_first_field_begins_at_character_one(read: Read, quote: str) -> None:
    """The character of a field is that of its first letter, in every column and way of parsing."""
    data = f"x,é,1\n1,{quote}é{quote},y\n".encode()
    result = read(data, CsvFormat(), [("a", pa.int64()), ("b", pa.string()), ("c", pa.int64())])
    width = len(quote) * 2
    assert [(e.line, e.column, e.character) for e in result.errors] == [
        (1, "a", 1),
        (2, "c", 5 + width),
    ]


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("1e-999999999", pa.decimal128(5, 2), Code.PRECISION_LOSS),
        ("1e999999999", pa.decimal128(5, 2), Code.OUT_OF_RANGE),
        ("0." + "0" * 40 + "1", pa.decimal128(5, 2), Code.PRECISION_LOSS),
        (MANY, pa.decimal128(38, 0), Code.OUT_OF_RANGE),
        ("1e99999999999", pa.decimal128(5, 2), Code.INVALID_VALUE),
        ("1_0", pa.decimal128(5, 2), Code.INVALID_VALUE),
        ("1e999999999", pa.int64(), Code.INVALID_VALUE),
        ('"[1.5]"', pa.list_(pa.int8()), Code.PRECISION_LOSS),
        ('"[300]"', pa.list_(pa.int8()), Code.OUT_OF_RANGE),
        ('"{""x"":1.5}"', STRUCT, Code.PRECISION_LOSS),
        (f'"{DEEP}"', pa.list_(pa.int8()), Code.INVALID_VALUE),
    ],
)
def test_text_is_not_bent(read: Read, text: str, kind: pa.DataType, code: Code) -> None:
    """Digits beyond all measure and fractions inside lists are refused, never cut or wrapped."""
    data = f"k,v\n1,{text}\n".encode()
    result = read(data, HEADED, [("k", pa.int64()), ("v", kind)], match="name")
    assert result.rows == []
    assert [(error.code, error.line, error.column) for error in result.errors] == [(code, 2, "v")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5" + "0" * 40, "1.50"),
        ("0." + "0" * 60, "0.00"),
        ("1e-2", "0.01"),
        ("-1.5E1", "-15.00"),
        ("0" * 50 + "7", "7.00"),
    ],
)
def test_long_decimals_keep_their_value(read: Read, text: str, value: str) -> None:
    """A decimal that fits is read, however it is spelled; from text and from JSON alike."""
    kind = pa.decimal128(5, 2)
    csv = read(f"k,v\n1,{text}\n".encode(), HEADED, [("v", kind)], match="name")
    assert csv.rows == [{"v": Decimal(value)}]
    line = f'{{"v":"{text}"}}\n'.encode()
    assert read(line, JsonFormat(), [("v", kind)], **JSON).rows == [{"v": Decimal(value)}]


@pytest.mark.parametrize(
    ("value", "kind", "code"),
    [
        ("1e39", pa.float32(), Code.OUT_OF_RANGE),
        ("[1e39]", pa.list_(pa.float32()), Code.OUT_OF_RANGE),
        ("1e-999999999", pa.decimal128(5, 2), Code.PRECISION_LOSS),
        ("1e999999999", pa.decimal128(5, 2), Code.OUT_OF_RANGE),
        ("1e999999999", pa.int64(), Code.INVALID_VALUE),
        (MANY, pa.decimal128(38, 0), Code.OUT_OF_RANGE),
        ('"1_0"', pa.decimal128(5, 2), Code.INVALID_VALUE),
        ('"\\ud800"', pa.string(), Code.INVALID_ENCODING),
        ('["\\ud800"]', pa.list_(pa.string()), Code.INVALID_ENCODING),
        ('"\\ud800"', pa.int64(), Code.INVALID_VALUE),
        ('{"x":1.5}', STRUCT, Code.PRECISION_LOSS),
        ('{"x":"1"}', STRUCT, Code.INVALID_VALUE),
        ("[1]", STRUCT, Code.INVALID_VALUE),
        ('{"x":"2024-01-01T00:00:00"}', pa.struct([("x", pa.timestamp("us", "UTC"))]), None),
        ('{"k":"x"}', pa.map_(pa.string(), pa.int64()), Code.INVALID_VALUE),
        (DEEP, pa.string(), Code.MALFORMED),
    ],
)
def test_json_is_not_bent(read: Read, value: str, kind: pa.DataType, code: Code | None) -> None:
    """Inside nested values the same strictness as outside: no fraction cut, no zone guessed."""
    result = read(f'{{"v":{value}}}\n'.encode(), JsonFormat(), [("v", kind)], **JSON)
    assert result.rows == []
    (error,) = result.errors
    assert (error.code, error.column, error.line) == (code or Code.INVALID_VALUE, "v", 1)


def test_a_number_of_many_digits_costs_its_line(read: Read) -> None:
    """Python turns no 5000 digits into a number; that is the line's fault, not the load's."""
    data = b'{"v":1' + b"0" * 5000 + b'}\n{"v":2}\n'
    result = read(data, JsonFormat(), [("v", pa.int64())], **JSON)
    assert result.rows == [{"v": 2}]
    assert [(error.line, error.code) for error in result.errors] == [(1, Code.OUT_OF_RANGE)]


def test_nested_json_of_every_kind(read: Read) -> None:
    """Maps, dates and decimals inside of structs are read as what they are."""
    kind = pa.struct(
        [("d", pa.date32()), ("m", pa.decimal128(5, 2)), ("o", pa.map_(pa.string(), pa.int64()))]
    )
    data = b'{"v":{"d":"2024-02-29","m":1.50,"o":{"k":1,"j":null}}}\n{"v":{"m":null}}\n'
    assert read(data, JsonFormat(), [("v", kind)], **JSON).rows == [
        {"v": {"d": date(2024, 2, 29), "m": Decimal("1.50"), "o": [("k", 1), ("j", None)]}},
        {"v": {"d": None, "m": None, "o": None}},
    ]


def test_a_part_that_may_not_be_null(read: Read) -> None:
    """A struct without a part that it needs is refused."""
    kind = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    result = read(b'{"v":{"y":1}}\n', JsonFormat(), [("v", kind)], **JSON)
    assert [error.code for error in result.errors] == [Code.NULL_NOT_ALLOWED]


def test_json_as_text_keeps_its_numbers(read: Read) -> None:
    """Numbers inside of an object that becomes text stay numbers, digit by digit."""
    data = b'{"v":[1.10,{"b":2.50,"c":"1.5"}]}\n'
    rows = read(data, JsonFormat(), [("v", pa.string())], **JSON).rows
    assert rows == [{"v": '[1.10, {"b": 2.50, "c": "1.5"}]'}]


@pytest.mark.parametrize("rest", [b' {"a":2}', b"\n[]", b"x", b","])
def test_nothing_may_follow_an_array(read: Read, rest: bytes) -> None:
    """What stands behind the array is not silently left out: the file is refused, at its place."""
    with pytest.raises(FileRefused, match="goes on after its array") as refused:
        read(b'[\n{"a":1}]' + rest, JsonFormat(strip_outer_array=True), [("a", pa.int64())])
    assert refused.value.row_error.byte_offset == 10 + len(rest) - len(rest.lstrip())


def test_an_array_is_told_when_its_schema_is_asked(stage: Stage) -> None:
    """An array read as NDJSON is named as what it is, not as an empty file."""
    with pytest.raises(FileRefused, match="one JSON array"):
        infer_schema([stage.staged("a.json", b'[{"a":1}]')], JsonFormat())


def test_schemas_of_odd_json(stage: Stage) -> None:
    """An empty object and what is nested too deeply are text; spellings of a name are one."""
    data = b'{"a":{},"B":1}\n{"b":2.5,"c":' + DEEP.encode() + b"}\n"
    found = infer_schema([stage.staged("a.json", data)], JsonFormat()).schema
    assert found.names == ["a", "B", "c"]
    assert found.field("a").type == pa.string()
    assert found.field("B").type == pa.float64()


@pytest.mark.parametrize("header", [b"id,id\n", b"id,ID\n", b"a,,\n"])
def test_a_schema_with_a_name_twice_is_refused(stage: Stage, header: bytes) -> None:
    """Two columns of one name, in any case, make no table."""
    with pytest.raises(FileRefused, match="two columns"):
        infer_schema([stage.staged("a.csv", header + b"1,2\n")], HEADED)


def test_spellings_of_several_files_are_one_column(stage: Stage) -> None:
    """Headers that differ by case alone give one column, spelled as in the first file."""
    files = [stage.staged("a.csv", b"id,Name\n1,x\n"), stage.staged("b.csv", b"ID,name\n2,y\n")]
    assert infer_schema(files, HEADED).schema.names == ["id", "Name"]


def test_bad_files_tell_nothing_where_they_may_be_skipped(stage: Stage) -> None:
    """With skip_bad a file that cannot be read is passed over, unless all are such."""
    bad = stage.staged("a.csv", "id\n1\n".encode("utf-16"))
    files = [bad, stage.staged("b.csv", b"id\n1\n")]
    assert infer_schema(files, HEADED, skip_bad=True).schema.names == ["id"]
    for some, skip in ((files, False), ([bad], True)):
        with pytest.raises(FileRefused, match="UTF-16"):
            infer_schema(some, HEADED, skip_bad=skip)


def test_binary_is_no_text(stage: Stage, read: Read) -> None:
    """A Parquet file under a text's name is refused, not taken for a header."""
    out = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), out)
    with pytest.raises(FileRefused, match="no text"):
        infer_schema([stage.staged("a.csv", out.getvalue())], HEADED)


def test_a_field_that_is_no_utf8_has_its_column(read: Read) -> None:
    """Bytes of another encoding are reported with column and character."""
    result = read("é,1,caf".encode() + b"\xe9\n", CsvFormat(), [(n, pa.string()) for n in "abc"])
    assert [(e.code, e.column, e.character) for e in result.errors] == [
        (Code.INVALID_ENCODING, "c", 5)
    ]


def test_an_hour_that_is_none(read: Read) -> None:
    """An hour that the clocks skip or repeat is refused with the zone that says so."""
    data = b"2024-03-31 02:30:00\n2024-10-27 02:30:00\n2024-06-01 02:30:00\n"
    format = CsvFormat(time_zone="Europe/Paris")
    result = read(data, format, [("a", pa.timestamp("us", "UTC"))])
    assert result.rows == [{"a": datetime(2024, 6, 1, 0, 30, tzinfo=UTC)}]
    assert ["Europe/Paris" in error.message for error in result.errors] == [True, True]


def test_nanoseconds_that_do_not_fit(read: Read) -> None:
    """A moment finer than the column keeps is an error of its row, shown in full."""
    out = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array([1, 1000], pa.timestamp("ns"))}), out)
    result = read(out.getvalue(), ParquetFormat(), [("a", pa.timestamp("us"))], **JSON)
    assert len(result.rows) == 1
    assert result.errors[0].value == "1970-01-01 00:00:00.000000001"


def test_avro_unions_and_uuids(read: Read, stage: Stage) -> None:
    """A union is as wide as its widest branch; a UUID is text."""
    name = uuid.uuid4()
    fields = [
        {"name": "n", "type": ["int", "long"]},
        {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
    ]
    out = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": fields}
    fastavro.writer(out, schema, [{"n": 2**40, "u": name}])
    found = infer_schema([stage.staged("a.avro", out.getvalue())], AvroFormat()).schema
    assert found == pa.schema([("n", pa.int64()), ("u", pa.string())])
    rows = read(out.getvalue(), AvroFormat(), found, **JSON).rows
    assert rows == [{"n": 2**40, "u": str(name)}]


def test_an_xml_element_that_stands_twice(read: Read) -> None:
    """A repeated child would lose a value: its row is refused, unless nothing asks for it."""
    data = b"<r>\n<row><a>1</a><a>2</a><b/></row>\n<row><a>3</a><z/><z/></row></r>"
    fields = [("a", pa.string()), ("b", pa.string())]
    result = read(data, XmlFormat(), fields, match="name", name="f.xml")
    assert result.rows == [{"a": "3", "b": None}]
    assert [(error.line, error.column) for error in result.errors] == [(2, "a")]


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ('<!DOCTYPE r SYSTEM "http://127.0.0.1:1/x.dtd">', "document type"),
        ('<!DOCTYPE r [<!ATTLIST row z CDATA "boo">]>', "document type"),
        ('<!DOCTYPE r [<!ENTITY % x "y">]>', "document type"),
        ('<?xml version="1.0" encoding="klingon"?>', "unknown encoding: klingon"),
    ],
)
def test_xml_that_declares_too_much(read: Read, head: str, why: str) -> None:
    """A document type of any kind, or an encoding nobody knows, refuses the file."""
    body = f"{head}<r><row><a>1</a></row></r>".encode()
    with pytest.raises(FileRefused, match=why):
        read(body, XmlFormat(), [("a", pa.string())], match="name", name="f.xml")


def test_an_endless_xml_row(read: Read) -> None:
    """A row that grows without end is refused before it fills the memory."""
    body = b"<r><row><a>" + b"x" * (MAX_RECORD + 1) + b"</a></row></r>"
    with pytest.raises(FileRefused, match="longer than 16 MiB"):
        read(body, XmlFormat(), [("a", pa.string())], match="name", name="f.xml")


def test_a_wide_xml_row(read: Read) -> None:
    """A row of very many elements costs as much as they are, not their square."""
    inner = b"".join(b"<c%d>1</c%d>" % (n, n) for n in range(20_000))
    fields = [("c19999", pa.int64())]
    result = read(b"<r><row>" + inner + b"</row></r>", XmlFormat(), fields, match="name")
    assert result.rows == [{"c19999": 1}]
