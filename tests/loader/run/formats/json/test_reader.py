"""NDJSON at two speeds, JSON arrays, and where a bad object stands."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.loader.model.file_formats import JsonFormat
from calque.loader.run.formats import Code, FileRefused, ReadSpec
from calque.loader.run.formats.delimited.blocks import Block
from calque.loader.run.formats.json.exact import ExactParser
from calque.loader.run.formats.json.mixed import MixedParser
from calque.loader.run.formats.json.quick import QuickParser
from calque.loader.run.formats.reader import Extent
from tests.loader.run.formats.conftest import Read

AB = [("a", pa.int64()), ("b", pa.string())]
NAME = {"match": "name", "name": "f.json"}


def test_plain(read: Read) -> None:
    """Objects become rows by name; missing fields are NULL, unknown ones are passed over."""
    data = b'{"a":1,"b":"x"}\n\n{"b":"y","z":0}\n'
    result = read(data, JsonFormat(), AB, **NAME)
    assert result.rows == [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]
    assert (result.records, result.extent.lines) == (2, 3)


def test_case_insensitive(read: Read) -> None:
    """Names in another case are found, also when spellings are mixed in one file."""
    data = b'{"A":1,"B":"x"}\n{"a":2,"B":"y"}\n'
    result = read(data, JsonFormat(), AB, match="name_insensitive")
    assert result.rows == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize(
    ("value", "kind", "code"),
    [
        ("1.5", pa.int64(), Code.PRECISION_LOSS),
        ("1.0", pa.int64(), Code.INVALID_VALUE),
        ('"1"', pa.int64(), Code.INVALID_VALUE),
        ("true", pa.int64(), Code.INVALID_VALUE),
        ("300", pa.int8(), Code.OUT_OF_RANGE),
        ("9223372036854775808", pa.int64(), Code.OUT_OF_RANGE),
        ("1e400", pa.float64(), Code.OUT_OF_RANGE),
        ("1.239", pa.decimal128(9, 2), Code.PRECISION_LOSS),
        ("12345678", pa.decimal128(9, 2), Code.OUT_OF_RANGE),
        ("1", pa.bool_(), Code.INVALID_VALUE),
        ('"2024-02-30"', pa.date32(), Code.INVALID_VALUE),
        ('"2024-01-01 00:00:00"', pa.timestamp("us", "UTC"), Code.NO_TIME_ZONE),
        ("17", pa.timestamp("us"), Code.INVALID_VALUE),
        ('[1,"x"]', pa.list_(pa.int64()), Code.INVALID_VALUE),
    ],
)
def test_strict(read: Read, value: str, kind: pa.DataType, code: Code) -> None:
    """A value of another type or range is refused with its line, and the next row is read."""
    data = f'{{"k":0,"v":null}}\n{{"k":1,"v":{value}}}\n'.encode()
    result = read(data, JsonFormat(), [("k", pa.int64()), ("v", kind)], **NAME)
    assert [row["k"] for row in result.rows] == [0]
    (error,) = result.errors
    assert (error.code, error.line, error.record, error.column) == (code, 2, 2, "v")
    assert (error.character, error.byte_offset) == (8, 17)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("1.25", pa.decimal128(9, 2), Decimal("1.25")),
        ('"1.25"', pa.decimal128(9, 2), Decimal("1.25")),
        ("[1,2]", pa.list_(pa.int64()), [1, 2]),
        ('{"x":1}', pa.struct([("x", pa.int64())]), {"x": 1}),
        ('{"x": 1}', pa.string(), '{"x": 1}'),
        ("1.10", pa.string(), "1.10"),
        ("3", pa.float64(), 3.0),
    ],
)
def test_values(read: Read, value: str, kind: pa.DataType, expected: object) -> None:
    """Values arrive exactly; anything may become text."""
    result = read(f'{{"v":{value}}}\n'.encode(), JsonFormat(), [("v", kind)], **NAME)
    assert result.rows == [{"v": expected}]


@pytest.mark.parametrize(
    ("line", "code", "character"),
    [
        (b'{"a":1', Code.MALFORMED, 7),
        (b'{"a":1} {"a":2}', Code.MALFORMED, 9),
        (b"[1]", Code.MALFORMED, 1),
        (b'{"a":1,"a":2}', Code.MALFORMED, None),
        (b'{"b":"\xff"}', Code.INVALID_ENCODING, 7),
    ],
)
def test_malformed(read: Read, line: bytes, code: Code, character: int | None) -> None:
    """A line that is no object costs itself, and its character is told."""
    data = b'{"a":1}\n' + line + b'\n{"a":3}\n'
    result = read(data, JsonFormat(), AB, **NAME)
    assert [row["a"] for row in result.rows] == [1, 3]
    (error,) = result.errors
    assert (error.code, error.line, error.character) == (code, 2, character)


@pytest.mark.parametrize(
    "data", ["null", "null\n{good}", "{good}\nnull\n{good}", "x\n null\n{good}"]
)
def test_null_is_no_object(read: Read, data: str) -> None:
    """A line that is null is refused, wherever it stands; pyarrow crashes on it, or makes a row."""
    lines = data.replace("{good}", '{"a":1}').split("\n")
    result = read("\n".join(lines).encode(), JsonFormat(), AB, **NAME)
    assert result.rows == [{"a": 1, "b": None}] * lines.count('{"a":1}')
    wrong = [number for number, line in enumerate(lines, 1) if line != '{"a":1}']
    assert [error.line for error in result.errors] == wrong


@pytest.mark.parametrize(
    ("line", "character"),
    [
        ('{"a":"x"}', 2),
        (' { "b" : "a" , "a" :"x"}', 16),
        ('{"z":{"a":1},"b":"é","A":"x"}', 22),
        ('{"z":[{"a":"}"}],"\\u0061":"x"}', 18),
    ],
)
def test_character_is_that_of_the_field(read: Read, line: str, character: int) -> None:
    """The place of a cell_error is where its own field is named, not a value or an inner key."""
    result = read(line.encode(), JsonFormat(), AB, match="name_insensitive", name="f.json")
    assert [error.character for error in result.errors] == [character]


@pytest.mark.parametrize("beside", ["", '{"a":"x"}\n'])
def test_doubled_keys(read: Read, beside: str) -> None:
    """A key twice is an error where it fills a column, whatever line stands beside it."""
    lines = ['{"a":1,"z":1,"z":{"q":1,"q":2}}', '{"a":1,"a":1}', '{"a":1,"b":{"q":1,"q":2}}']
    result = read((beside + "\n".join(lines)).encode(), JsonFormat(), AB, **NAME)
    assert result.rows == [{"a": 1, "b": None}]
    assert [error.message for error in result.errors][-2:] == [
        "the key 'a' stands there twice",
        "the key 'q' stands there twice",
    ]
    rescued = read(lines[0].encode(), JsonFormat(), AB, rescue="r", **NAME)
    assert (rescued.rows, rescued.rejected) == ([], 1)


def test_missing_field_is_an_error_when_told(read: Read) -> None:
    """MISSING_FIELD_AS = ERROR refuses an object without the field; null is no missing field."""
    data = b'{"a":1,"b":null}\n{"a":2}\n'
    result = read(data, JsonFormat(missing_field="error"), AB, **NAME)
    assert result.rows == [{"a": 1, "b": None}]
    assert result.errors[0].code == Code.MISSING_FIELD


def test_null_if(read: Read) -> None:
    """Null markers are NULL in text and in typed columns."""
    data = b'{"a":1,"b":"NA"}\n{"a":"NA","b":"x"}\n'
    result = read(data, JsonFormat(null_if=("NA",)), AB, **NAME)
    assert result.rows == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


@pytest.mark.parametrize(
    "data",
    [
        b'[{"a":1,"b":"]}"},\n {"a":2,"b":"y\\""}]',
        b'{"a":1,\n "b":"]}"}\n{"a":2,"b":"y\\""}',
        b' [ {"a":1,"b":"]}"} , {"a":2,"b":"y\\""} ] \n',
    ],
)
def test_array(read: Read, data: bytes) -> None:
    """One array, or objects over several lines, are read with STRIP_OUTER_ARRAY."""
    result = read(data, JsonFormat(strip_outer_array=True), AB, **NAME)
    assert result.rows == [{"a": 1, "b": "]}"}, {"a": 2, "b": 'y"'}]


def test_array_errors(read: Read) -> None:
    """A bad value in an array has its line; a cut or unannounced array refuses the file."""
    data = b'[{"a":1},\n{"a":"x"},\n{"a":3}]'
    result = read(data, JsonFormat(strip_outer_array=True), AB, **NAME)
    assert [row["a"] for row in result.rows] == [1, 3]
    assert [(error.line, error.record) for error in result.errors] == [(2, 2)]
    with pytest.raises(FileRefused) as cut:
        read(data[:-5], JsonFormat(strip_outer_array=True), AB, **NAME)
    assert (cut.value.row_error.code, cut.value.row_error.line) == (Code.TRUNCATED, 3)
    with pytest.raises(FileRefused, match="STRIP_OUTER_ARRAY"):
        read(data, JsonFormat(), AB, **NAME)


SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("t", pa.timestamp("us")),
        ("l", pa.list_(pa.int64())),
    ]
)
objects = st.fixed_dictionaries(
    {},
    optional={
        "i": st.none() | st.integers(-(2**31), 2**31 - 1),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "s": st.none() | st.text(max_size=8),
        "t": st.none() | st.datetimes().map(lambda moment: moment.isoformat()),
        "l": st.none() | st.lists(st.integers(0, 9), max_size=3),
        "other": st.integers(),
    },
)


@settings(max_examples=150, deadline=None)
@given(st.lists(objects, min_size=1, max_size=12), st.booleans())
def test_parsers_agree(rows: list[dict[str, object]], ascii_only: bool) -> None:
    """The quick and the exact parser read the same values from sound lines."""
    data = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows).encode(
        "utf-8", "surrogatepass"
    )
    spec = ReadSpec(format=JsonFormat(), schema=SCHEMA, match="name")
    exact = ExactParser(spec, "f")
    block = Block(data, len(data), 0, True)
    careful = exact.parse(block, Extent(), 100)
    quick = QuickParser(spec, {}).parse(block, Extent())
    if quick is not None:
        assert careful.rejected == ()
        assert quick.rows.equals(careful.rows)


SUSPECTED = pa.schema([*SCHEMA, ("d", pa.decimal128(6, 2)), ("b", pa.bool_()), ("n", pa.uint8())])
values = st.sampled_from(
    [
        *(
            "1e-5",
            "1e-999999999",
            "1." + "1" * 40,
            "null",
            "1",
            "-1",
            "255",
            "256",
            "1.5",
            "1.0",
            "1e2",
            "3000000000",
            "9" * 30,
            "1e400",
        ),
        *('"x"', '"1.25"', '"2024-01-01T00:00:00"', '"2024-02-30"', "true", "false", "12.345"),
        *("99999.5", "[1]", '["x"]', "{}", '{"i":1}', "NaN", "1}", '"', "", '"a\tb"', '"\\u0069"'),
    ]
)
torn = st.sampled_from(
    ["{", "}", "[]", "5", '{"i":1', '{"i":1}}', '{"i":1} x', '{"i":1,"i":2}', '{"i" 1}', " {} "]
)
lines = torn | st.dictionaries(st.sampled_from([*SUSPECTED.names, "z"]), values, max_size=4).map(
    lambda row: "{" + ", ".join(f'"{key}": {value}' for key, value in row.items()) + "}"
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(lines, min_size=1, max_size=30),
    st.sets(st.sampled_from([*SUSPECTED.names, ""])),
    st.integers(0, 5),
)
def test_set_apart_lines_read_as_one_by_one(texts: list[str], learned: set[str], room: int) -> None:
    """Rows, their order and every error are those of the exact parser over the whole block."""
    data = "\n".join(texts).encode()
    spec = ReadSpec(format=JsonFormat(), schema=SUSPECTED, match="name")
    exact, block = ExactParser(spec, "f"), Block(data, len(data), 7, True)
    before = Extent(lines=3, records=2)
    quick = QuickParser(spec, {})
    found = MixedParser(quick, exact, learned).parse(block, before, room)
    careful = exact.parse(block, before, room)
    if found is not None:
        assert str(found.rows.to_pylist()) == str(careful.rows.to_pylist())  # NaN is not itself
        assert (found.first_record, found.records) == (careful.first_record, careful.records)
        assert (found.rejected, found.errors) == (careful.rejected, careful.errors)


DECIMALS = pa.schema([("d", pa.decimal128(6, 2)), ("w", pa.decimal128(38, 5)), ("k", pa.int64())])
amounts = st.sampled_from(
    ["0", "-0.00", "1.25", "-1.5", "9999.99", "9999.995", "1e2", "15e-1", "1e-5", "1e-400", "null"]
) | st.decimals(-(10**4), 10**4, places=2).map(str)
priced = st.builds(
    lambda d, w, k: f'{{"d": {d}, "w": {w}, "k": {k}}}',
    amounts,
    amounts | st.sampled_from(["1" * 20, '"1.5"', "1e-999999999", "0." + "0" * 40 + "1", "NaN"]),
    st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(priced, min_size=1, max_size=4) | st.lists(lines, min_size=1, max_size=3))
def test_what_is_read_quickly_is_what_is_read_exactly(texts: list[str]) -> None:
    """A block that the quick parser takes, hostile or not, has the rows of the exact one."""
    data = "\n".join(texts).encode()
    for schema in (DECIMALS, SUSPECTED):
        spec = ReadSpec(format=JsonFormat(), schema=schema, match="name")
        block = Block(data, len(data), 0, True)
        quick = QuickParser(spec, {})
        found = quick.parse(block, Extent()) if quick.can_read(block) else None
        careful = ExactParser(spec, "f").parse(block, Extent(), 100)
        if found is not None:
            assert careful.rejected == ()
            assert str(found.rows.to_pylist()) == str(careful.rows.to_pylist())


@pytest.mark.parametrize("price", ["1.25", "5e-1", "0.0"])
def test_usual_decimals_are_read_quickly(price: str) -> None:
    """Decimals need no line set apart, whatever other columns hold."""
    data = f'{{"d": {price}, "w": {price}, "k": 1, "share": 5e-06}}\n'.encode() * 3
    spec = ReadSpec(format=JsonFormat(), schema=DECIMALS, match="name")
    found = QuickParser(spec, {}).parse(Block(data, len(data), 0, True), Extent())
    assert found is not None
    assert found.rows["d"].to_pylist() == [Decimal(price).quantize(Decimal("0.01"))] * 3


@pytest.mark.parametrize(
    ("bad", "learns"),
    [
        ('{"i": "oops"}', "i"),
        ('{"i": 1.5}', "i"),
        ('{"i": 3000000000}', "i"),
        ('{"d": 1.555}', "d"),
        ('{"d": 1e-5}', None),
        ('{"t": "2024-02-30"}', "t"),
        ('{"b": 1}', "b"),
        ('{"i": 1', ""),
        ("oops", ""),
    ],
)
def test_only_bad_lines_are_read_one_by_one(bad: str, learns: str | None) -> None:
    """Bad lines of any common kind are set apart, and looked for first in what follows."""
    data = "".join(f"{bad if n % 9 == 5 else '{}'}\n" for n in range(500)).encode()
    spec = ReadSpec(format=JsonFormat(), schema=SUSPECTED, match="name")
    quick, block = QuickParser(spec, {}), Block(data, len(data), 0, True)
    mixed = MixedParser(quick, ExactParser(spec, "f"), spec.learned)
    found = mixed.parse(block, Extent(), 1000)
    assert found is not None
    assert found.rejected == tuple(n for n in range(500) if n % 9 == 5)
    assert [error.line for error in found.errors] == [n + 1 for n in found.rejected]
    assert spec.learned == (set() if learns is None else {learns})


def test_what_was_learned_is_forgotten() -> None:
    """Values that are only spelled in an uncommon way are rows, and suspected no longer."""
    spec = ReadSpec(format=JsonFormat(), schema=SUSPECTED, match="name", learned={"d"})
    mixed = MixedParser(QuickParser(spec, {}), ExactParser(spec, "f"), spec.learned)
    data = b'{"d": 1}\n{"d": 1e1}\n{"d": 2}\n'
    found = mixed.parse(Block(data, len(data), 0, True), Extent(), 10)
    assert found is not None
    assert found.rows["d"].to_pylist() == [Decimal("1.00"), Decimal("10.00"), Decimal("2.00")]
    assert not spec.learned


def test_pieces(read: Read) -> None:
    """Pieces of NDJSON give the rows of the whole, whatever byte they begin at."""
    data = b"".join(b'{"a":%d}\n' % number for number in range(500))
    for cut in (1, 7, 8, 9, 1000, 1001, 1002, len(data) - 1):
        left = read(data, JsonFormat(), AB, length=cut, **NAME)
        right = read(data, JsonFormat(), AB, offset=cut, **NAME)
        assert [row["a"] for row in left.rows + right.rows] == list(range(500))
        assert left.extent.end == right.extent.start
