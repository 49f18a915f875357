"""Delimited text: options, strictness and the exact place of every refused record."""

from __future__ import annotations

import codecs

import pyarrow as pa
import pytest

from calque.errors import ConditionNotMatch, InvalidInput, NotFound
from calque.loader.model.content_hash import content_hash
from calque.loader.model.file_formats import CsvFormat
from calque.loader.request.type_names import text_of_type
from calque.loader.run.formats import Code, FileRefused, ReadSpec, open_reader
from calque.loader.run.formats.reader import MOST_KEPT
from tests.loader.run.formats.conftest import Read, Stage

AB = [("a", pa.int64()), ("b", pa.string())]


def pairs(result: object) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in result.rows]  # type: ignore[attr-defined]


def test_plain(read: Read) -> None:
    """Rows arrive typed and in order, and the bytes are hashed on the way."""
    data = b"1,x\n2,y\n"
    result = read(data, CsvFormat(), AB)
    assert pairs(result) == [(1, "x"), (2, "y")]
    assert (result.records, result.extent.lines, result.extent.end) == (2, 2, len(data))
    assert result.source.hashes() is not None
    assert content_hash([data]).startswith("x3:")


@pytest.mark.parametrize(
    ("data", "options", "rows"),
    [
        (b"1;x\n", {"field_delimiter": ";"}, [(1, "x")]),
        (b"1\tx\n", {"field_delimiter": "\t"}, [(1, "x")]),
        (b"1||x\n2||y\n", {"field_delimiter": "||"}, [(1, "x"), (2, "y")]),
        (b'1||"x||z"\n2||y\n', {"field_delimiter": "||"}, [(1, "x||z"), (2, "y")]),
        (
            b"1\x01x\x022\x01y\x02",
            {"field_delimiter": "\x01", "record_delimiter": "\x02"},
            [(1, "x"), (2, "y")],
        ),
        (b"1,x\ny|\n2,z|\n", {"record_delimiter": "|\n"}, [(1, "x\ny"), (2, "z")]),
        (b"1,x\r\n2,y\r\n", {}, [(1, "x"), (2, "y")]),
        (b"1,x\r2,y\r", {}, [(1, "x"), (2, "y")]),
        (b"1,x\n2,y", {}, [(1, "x"), (2, "y")]),
        (b'1,"x,""y"""\n', {}, [(1, 'x,"y"')]),
        (b'1,"x\ny"\n2,z\n', {}, [(1, "x\ny"), (2, "z")]),
        (b"1,'x,y'\n", {"quote": "'"}, [(1, "x,y")]),
        (b"1,x\n2,y", {"skip_header": 1}, [(2, "y")]),
        (b"1,x\n2,y", {"skip_header": 10**23}, []),
        (b'1,"x\n', {"quote": None}, [(1, '"x')]),
        (b'1,5" disc\n', {}, [(1, '5" disc')]),
        (b'1,"a\\"b"\n2,c\\,d\n', {"escape": "\\"}, [(1, 'a"b'), (2, "c,d")]),
        (b"1,a\\\r\nb\r\n2,c\r\n", {"escape": "\\"}, [(1, "a\r\nb"), (2, "c")]),
        (b'"1",x\n"2",', {"empty_field_as_null": True}, [(1, "x"), (2, None)]),
        (b'"1",x\n"2",', {"null_if": ("",)}, [(1, "x"), (2, None)]),
        (b"# top\n\n1,x\n#2,y\n3,z\n", {"comment": "#"}, [(1, "x"), (3, "z")]),
        (b"junk\nmore\n1,x\n", {"skip_header": 2}, [(1, "x")]),
        (b"b,a\n1,x\n", {"parse_header": True}, [(1, "x")]),
        (b"1,\\N\n2,NULL\n", {"null_if": ("\\N", "NULL")}, [(1, None), (2, None)]),
        (b'1,"NULL"\n', {"null_if": ("NULL",)}, [(1, "NULL")]),
        (b'1,"NULL"\n', {"null_if": ("NULL",), "quoted_nulls": True}, [(1, None)]),
        (b"1,\n", {}, [(1, "")]),
        (b'1,\n2,""\n', {"empty_field_as_null": True}, [(1, None), (2, "")]),
        (b",x\n", {"empty_field_as_null": True}, [(None, "x")]),
        (b" 1 , x \n", {"trim_space": True}, [(1, "x")]),
        (b" 1 , NULL \n", {"trim_space": True, "null_if": ("NULL",)}, [(1, None)]),
        ("1,é\n".encode("latin-1"), {"encoding": "latin-1"}, [(1, "é")]),
        ("1,é\n".encode("utf-16"), {"encoding": "utf-16"}, [(1, "é")]),
        (codecs.BOM_UTF8 + b"1,x\n", {}, [(1, "x")]),
        (b"1,\xff\n", {"replace_invalid_characters": True}, [(1, "�")]),
        (
            b"1\n2,y,z\n3,w\n",
            {"error_on_column_count_mismatch": False},
            [(1, None), (2, "y"), (3, "w")],
        ),
        (b"1,x\n\n\n2,y\n", {}, [(1, "x"), (2, "y")]),
    ],
)
def test_options(read: Read, data: bytes, options: dict[str, object], rows: list[object]) -> None:
    """Each layout option reads what it says, and refuses nothing of it."""
    result = read(data, CsvFormat(**options), AB)  # type: ignore[arg-type]
    assert pairs(result) == rows
    assert result.errors == []


@pytest.mark.parametrize(
    ("text", "kind", "options", "value"),
    [
        ("31/12/2024", pa.date32(), {"date_format": "%d/%m/%Y"}, "2024-12-31"),
        (
            "31.12.2024 08:15",
            pa.timestamp("us"),
            {"timestamp_format": "%d.%m.%Y %H:%M"},
            "2024-12-31 08:15:00",
        ),
        (
            "2024-12-31 08:15:00",
            pa.timestamp("us", "UTC"),
            {"time_zone": "Europe/Paris"},
            "2024-12-31 07:15:00+00:00",
        ),
        ("2024-12-31T08:15:00+02:00", pa.timestamp("us", "UTC"), {}, "2024-12-31 06:15:00+00:00"),
        ("1,5", pa.float64(), {"decimal_point": ",", "field_delimiter": ";"}, "1.5"),
        ("1,50", pa.decimal128(9, 2), {"decimal_point": ",", "field_delimiter": ";"}, "1.50"),
        ("yes", pa.bool_(), {"true_values": ("yes",), "false_values": ("no",)}, "True"),
        ("08:15:00", pa.time64("us"), {}, "08:15:00"),
        ("[1, 2]", pa.list_(pa.int64()), {"field_delimiter": ";"}, "[1, 2]"),
        ("inf", pa.float64(), {}, "inf"),
    ],
)
def test_values(
    read: Read, text: str, kind: pa.DataType, options: dict[str, object], value: str
) -> None:
    """Spellings of values are read as the options say."""
    result = read(text.encode() + b"\n", CsvFormat(**options), [("a", kind)])  # type: ignore[arg-type]
    assert result.errors == []
    assert str(result.rows[0]["a"]) == value


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("x", pa.int64(), Code.INVALID_VALUE),
        ("1.5", pa.int64(), Code.PRECISION_LOSS),
        ("300", pa.int8(), Code.OUT_OF_RANGE),
        ("9223372036854775808", pa.int64(), Code.OUT_OF_RANGE),
        ("1e400", pa.float64(), Code.OUT_OF_RANGE),
        ("1.239", pa.decimal128(9, 2), Code.PRECISION_LOSS),
        ("12345678.00", pa.decimal128(9, 2), Code.OUT_OF_RANGE),
        ("12345678", pa.decimal128(9, 2), Code.OUT_OF_RANGE),
        ("2024-02-30", pa.date32(), Code.INVALID_VALUE),
        ("2024-01-01 00:00:00.1234567", pa.timestamp("us"), Code.PRECISION_LOSS),
        ("2024-01-01 00:00:00Z", pa.timestamp("us"), Code.UNEXPECTED_TIME_ZONE),
        ("2024-01-01 00:00:00", pa.timestamp("us", "UTC"), Code.NO_TIME_ZONE),
        ("maybe", pa.bool_(), Code.INVALID_VALUE),
        ('""', pa.int64(), Code.EMPTY_FIELD),
    ],
)
def test_strict(read: Read, text: str, kind: pa.DataType, code: Code) -> None:
    """No rounding, overflow, truncation or guess: the value is refused with its reason."""
    result = read(f"k,{text}\n".encode(), CsvFormat(), [("k", pa.string()), ("v", kind)])
    assert result.rows == []
    (error,) = result.errors
    assert (error.code, error.column, error.target_type) == (code, "v", text_of_type(kind))
    assert (error.line, error.record, error.character, error.byte_offset) == (1, 1, 3, 0)


def test_not_null(read: Read) -> None:
    """NULL in a column that does not allow it is refused, other rows stay."""
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    result = read(b"1,x\nN,y\n", CsvFormat(null_if=("N",)), schema)
    assert pairs(result) == [(1, "x")]
    assert [error.code for error in result.errors] == [Code.NULL_NOT_ALLOWED]


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"1,x\n2\n3,z\n", (2, 2, 4, Code.COLUMN_COUNT, "2")),
        (b"1,x\n2,y,z\n3,z\n", (2, 2, 4, Code.COLUMN_COUNT, "2,y,z")),
        (b"1,x\n\n\nq,y\n", (4, 2, 6, Code.INVALID_VALUE, "q,y")),
        (b'1,"x\ny"\nq,"z\nw"\n', (3, 2, 8, Code.INVALID_VALUE, 'q,"z\nw"')),
        (b'1,"x"y\n2,z\n', (1, 1, 0, Code.BAD_QUOTE, '1,"x"y')),
        (b'1,x\n2,"open\n3,z\n', (2, 2, 4, Code.UNTERMINATED_QUOTE, '2,"open')),
        (b"1,x\n2,\xff\n", (2, 2, 4, Code.INVALID_ENCODING, "2,\\xff")),
        ("1,é\nq,é\n".encode(), (2, 2, 5, Code.INVALID_VALUE, "q,é")),
    ],
)
def test_positions(read: Read, data: bytes, where: tuple[object, ...]) -> None:
    """Line (physical), record, byte offset, code and raw line of a refused record."""
    (error,) = (result := read(data, CsvFormat(), AB)).errors
    assert (error.line, error.record, error.byte_offset, error.code, error.raw) == where
    assert result.records == len(result.rows) + 1


def test_character(read: Read) -> None:
    """The character counts from 1, in characters and not in bytes, quotes included."""
    result = read('"é,é",q\n'.encode(), CsvFormat(), [("b", pa.string()), ("a", pa.int64())])
    assert result.errors[0].character == 7


def test_wrong_delimiter(read: Read) -> None:
    """The message of a wrong delimiter says which one the file seems to have."""
    result = read(b"1;x\n2;y\n", CsvFormat(), AB)
    assert [error.code for error in result.errors] == [Code.COLUMN_COUNT] * 2
    assert "is that the delimiter?" in result.errors[0].message
    assert "';'" in result.errors[0].message


def test_endless_line(read: Read) -> None:
    """A line of 40 MB costs itself and not memory or the rest of the file."""
    data = b"1,x\n2," + b"y" * 40_000_000 + b"\n3,z\n"
    result = read(data, CsvFormat(), AB)
    assert pairs(result) == [(1, "x"), (3, "z")]
    (error,) = result.errors
    assert (error.code, error.line, error.byte_offset) == (Code.RECORD_TOO_LONG, 2, 4)


def test_open_quote_in_a_big_file(read: Read) -> None:
    """A quote that never closes costs its line, however long the file goes on."""
    data = b'1,x\n2,"open\n' + b"3,zzzzzzzzzzzzz\n" * 1_300_000
    result = read(data, CsvFormat(), AB)
    assert [error.line for error in result.errors] == [2]
    assert len(result.rows) == 1_300_001


def test_match_by_name(read: Read) -> None:
    """Columns find theirs by name; missing ones are NULL, unknown ones are passed over."""
    data = b"B,extra,A\nx,?,1\n"
    format = CsvFormat(parse_header=True)
    fields = [("a", pa.int64()), ("b", pa.string()), ("c", pa.string())]
    assert read(data, format, fields, match="name_insensitive").rows == [
        {"a": 1, "b": "x", "c": None}
    ]
    with pytest.raises(FileRefused, match="no column of the file"):
        read(data, format, fields, match="name")
    with pytest.raises(InvalidInput, match="names them"):
        read(data, CsvFormat(), fields, match="name")


def test_column_list(read: Read) -> None:
    """A column list names the target of each column of the file."""
    result = read(b"x,1\n", CsvFormat(), AB, columns=("b", "a"))
    assert result.rows == [{"a": 1, "b": "x"}]


def test_header_of_another_width(read: Read) -> None:
    """A header that does not fit the table refuses the file, not every row of it."""
    with pytest.raises(FileRefused) as caught:
        read(b"a,b,c\n1,x,2\n", CsvFormat(parse_header=True), AB)
    assert caught.value.row_error.code == Code.COLUMN_COUNT
    assert caught.value.row_error.line == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf16_is_named(read: Read, encoding: str) -> None:
    """A UTF-16 file that was not announced is refused, with the option to set."""
    with pytest.raises(FileRefused, match="UTF-") as caught:
        read("1,x\n".encode(encoding), CsvFormat(), AB)
    assert caught.value.row_error.code == Code.INVALID_ENCODING
    assert "ENCODING" in str(caught.value)


def test_rescue(read: Read) -> None:
    """With a rescue column a value that does not fit is kept there and the row is loaded."""
    result = read(b"q,x\n1,y\n", CsvFormat(), AB, rescue="_rescued")
    assert result.rows == [
        {"a": None, "b": "x", "_rescued": '{"a": "q"}'},
        {"a": 1, "b": "y", "_rescued": None},
    ]


def test_kept_errors(read: Read) -> None:
    """Errors past the number kept are counted still."""
    result = read(b"q,x\n" * 50, CsvFormat(), AB, keep_errors=3)
    assert (len(result.errors), result.rejected, result.records) == (3, 50, 50)


@pytest.mark.parametrize("data", [b"", b"\n", b"a,b\n", b"a,b"])
def test_nothing_to_read(read: Read, data: bytes) -> None:
    """Empty and header-only files give no rows and no error."""
    assert read(data, CsvFormat(parse_header=True), AB, match="name").rows == []


def test_vanished_and_changed(stage: Stage, read: Read) -> None:
    """A file that went away or was replaced after listing is told apart from bad data."""
    file = stage.staged("f.csv", b"1,x\n")
    (stage.root / "f.csv").write_bytes(b"2,yyyy\n")
    with pytest.raises(ConditionNotMatch):
        list(stage.source(file).stream())
    (stage.root / "f.csv").unlink()
    with pytest.raises(NotFound):
        list(stage.source(file).stream())


def test_files_of_a_task_share_what_is_alike(stage: Stage) -> None:
    """Files of one task with equal, other and quoted headers are read as each alone is."""
    texts = [
        b"a,b\n1,x\n",
        b"a,b\n2,y\nbad,z\n",
        b"b,a\nq,3\n",
        b'"a",b\n4,"m\nn"\nbad,o\n',
        b"a,b\n5,k\nbad,l\n",
        b"\na,b\n6,p\n",
        b"a,b\r\n7,r\r\n",
        *(f"a,b,c{n}\n{n},t,0\n".encode() for n in range(80)),
    ]
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    format = CsvFormat(parse_header=True, error_on_column_count_mismatch=False)

    def read(name: str, text: bytes, spec: ReadSpec) -> list[object]:
        reader = open_reader(stage.source(stage.staged(name, text)), spec)
        batches = list(reader.read())
        rows = [row for batch in batches for row in batch.rows.to_pylist()]
        errors = [error for batch in batches for error in batch.errors]
        return [rows, errors, reader.extent]

    shared = ReadSpec(format=format, schema=schema, match="name")
    for number, text in enumerate(texts):
        alone = ReadSpec(format=format, schema=schema, match="name")
        name = f"{number}.csv"
        assert read(name, text, shared) == read(name, text, alone)
    assert len(shared.kept) <= MOST_KEPT
