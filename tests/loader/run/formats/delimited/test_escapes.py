"""Escapes and markers of NULL are read as those who wrote them mean them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import InvalidInput
from calque.loader.model.file_formats import CsvFormat
from calque.loader.request.options import build_format
from calque.loader.request.parse import parse
from calque.loader.run.formats.delimited.dialect import Dialect, text_of
from calque.loader.run.infer import infer_schema
from tests.loader.run.formats.conftest import Read, Stage

TWO = [("a", pa.string()), ("b", pa.string())]
BACKSLASH = CsvFormat(escape="\\", null_if=("\\N",))


def pairs(read: Read, data: bytes, format: Any) -> list[tuple[object, object]]:
    result = read(data, format, TWO)
    assert result.errors == []
    return [(row["a"], row["b"]) for row in result.rows]


def test_an_escape_that_is_the_quote_doubles_it(read: Read) -> None:
    """ESCAPE equal to the quote is RFC 4180: quotes are doubled, records and fields stay whole."""
    data = b'1,"a ""b"" c"\n2,"x,\ny"\n3,"z"\n"4",""""\n'
    plain = pairs(read, data, CsvFormat())
    assert plain == [("1", 'a "b" c'), ("2", "x,\ny"), ("3", "z"), ("4", '"')]
    assert pairs(read, data, CsvFormat(escape='"')) == plain
    single = data.replace(b'"', b"'")
    found = pairs(read, single, CsvFormat(quote="'", escape="'"))
    assert found == [(a, str(b).replace('"', "'")) for a, b in plain]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"\\N", None),
        (b"\\\\N", "\\N"),
        (b"C:\\new", "C:\\new"),
        (b"C:\\\\new", "C:\\new"),
        (b"a\\,b", "a,b"),
        (b"a\\\nb", "a\nb"),
        (b"\\\\", "\\"),
        (b'"say \\"hi\\""', 'say "hi"'),
        (b'"C:\\temp"', "C:\\temp"),
        (b'"\\N"', "\\N"),
        (b'"a\\\\"', "a\\"),
        (b'"a\\""""', 'a""'),
        (b"\\\xc3\xa9", "\\é"),
    ],
)
def test_an_escape_stays_before_ordinary_letters(
    read: Read, text: bytes, value: str | None
) -> None:
    r"""``\N`` is NULL, ``\\N`` is text; only quotes, delimiters and escapes are escaped."""
    assert pairs(read, b"1," + text + b"\n2,x\n", BACKSLASH) == [("1", value), ("2", "x")]


def test_quoted_markers_are_null_where_told(read: Read) -> None:
    """QUOTED_NULLS makes a quoted marker NULL, an escaped one never."""
    told = CsvFormat(escape="\\", null_if=("\\N",), quoted_nulls=True)
    assert pairs(read, b'"\\N","\\\\N"\n', told) == [(None, "\\N")]


def test_inference_knows_the_same_markers(stage: Stage) -> None:
    r"""A column of numbers and ``\N`` is one of numbers; a quoted marker is text."""
    data = b'1,\\N,"\\N"\n2,3,4\n'
    found = infer_schema([stage.staged("f.csv", data)], BACKSLASH).schema
    assert [str(kind) for kind in found.types] == ["int64", "int64", "string"]


def test_markers_alone_cost_nothing(read: Read) -> None:
    r"""Blocks whose only escapes are ``\N`` are read quickly, and errors keep their places."""
    data = b"".join(b"%d\t\\N\n" % n for n in range(2000)) + b"x\t\\N\n\\N\ty"
    format = build_format("mysql", {})
    assert isinstance(format, CsvFormat)
    dialect = Dialect.of(format, b"\n")
    assert not dialect.escapes_in(data, len(data))
    assert dialect.escapes_in(data + b"\\n", len(data) + 2)
    assert dialect.escapes_in(b"a\\N\n", 4)
    result = read(data, format, [("a", pa.int64()), ("b", pa.string())])
    assert result.rows[-1] == {"a": None, "b": "y"}
    assert len(result.rows) == 2001
    assert [(error.line, error.column) for error in result.errors] == [(2001, "a")]


DUMPS = {
    "mysql": [
        (b"1\tplain\n", ("1", "plain")),
        (b"\\N\t\\\\N\n", (None, "\\N")),
        (b"a\\\tb\tc\\\nd\n", ("a\tb", "c\nd")),
        (b"C:\\\\new\t\\n\\t\\r\\b\\0\\Z\n", ("C:\\new", "\n\t\r\b\0\x1a")),
        (b'\\q\\"\tends in a return\r\n', ('q"', "ends in a return\r")),
        (b"\t\n", ("", "")),
    ],
    "postgresql": [
        (b"1\tplain\n", ("1", "plain")),
        (b"\\N\t\\\\N\n", (None, "\\N")),
        (b"a\\tb\t\\b\\f\\n\\r\\t\\v\n", ("a\tb", "\b\f\n\r\t\v")),
        (b"\\101\\x42\\xe\t\\303\\251\\q\n", ("AB\x0e", "éq")),
        (b"\\.x\t\\.\n\\.\n", (".x", ".")),
    ],
    "hive": [
        (b"1\x01plain\n", ("1", "plain")),
        (b"\\N\x01C:\\new\n", (None, "C:\\new")),
        (b"a\tb\x01ends in\\\n", ("a\tb", "ends in\\")),
    ],
}


@pytest.mark.parametrize(
    ("kind", "data", "row"),
    [(kind, *one) for kind, found in DUMPS.items() for one in found],
)
def test_dumps_are_read_as_their_own_readers_do(
    read: Read, kind: str, data: bytes, row: tuple[str | None, str | None]
) -> None:
    """The text formats of MySQL, PostgreSQL and Hive, each by its own defaults."""
    assert pairs(read, data, build_format(kind, {})) == [row]


def test_hive_with_an_escape(read: Read) -> None:
    """ESCAPED BY of Hive: letters n and r, any other byte is itself; a line end always ends."""
    format = build_format("hive", {"escape": "\\", "field_delimiter": ","})
    data = b"a\\,b,x\\ny\\tz\n\\\\N,\\N\nc,d\\\ne,f\n"
    assert pairs(read, data, format) == [
        ("a,b", "x\nytz"),
        ("\\N", None),
        ("c", "d\\"),
        ("e", "f"),
    ]


def test_mysql_with_quotes(read: Read) -> None:
    """ENCLOSED BY of MySQL: quotes are escaped or doubled, and lines may run on inside."""
    format = build_format("mysql", {"quote": '"', "field_delimiter": ","})
    data = b'"a\\"b","c""d"\n"x\\ny",\\N\n"two\nlines","\\\\"\n'
    assert pairs(read, data, format) == [('a"b', 'c"d'), ("x\ny", None), ("two\nlines", "\\")]


texts = st.none() | st.text(st.sampled_from('ab\\N\t\n\r\0\b\x1a",é.\x01n'), max_size=6)


def as_mysql(value: str | None) -> str:
    if value is None:
        return "\\N"
    for plain, spelled in (("\\", "\\\\"), ("\t", "\\\t"), ("\n", "\\\n"), ("\0", "\\0")):
        value = value.replace(plain, spelled)
    return value


def as_postgresql(value: str | None) -> str:
    if value is None:
        return "\\N"
    for plain, spelled in (
        ("\\", "\\\\"),
        ("\t", "\\t"),
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("\b", "\\b"),
    ):
        value = value.replace(plain, spelled)
    return value


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=8))
def test_what_a_database_writes_comes_back(rows: list[tuple[str | None, str | None]]) -> None:
    """Any text, spelled as the database's writer spells it, is read as it was."""
    for kind, spell in (("mysql", as_mysql), ("postgresql", as_postgresql)):
        format = build_format(kind, {})
        assert isinstance(format, CsvFormat)
        data = "".join(f"{spell(a)}\t{spell(b)}\n" for a, b in rows).encode()
        dialect = Dialect.of(format, b"\n")
        nulls = frozenset(format.null_if)
        found = [
            tuple(text_of(field, format, nulls) for field in dialect.fields(data, record))
            for record in dialect.records(data, 0, final=True)
        ]
        assert found == rows


def test_the_spellings_of_snowflake_and_databricks() -> None:
    """A doubled backslash in SQL text is one backslash, in each dialect's own words."""
    snowflake = parse(
        r"COPY INTO t FROM 's3://b/in/' FILE_FORMAT = (TYPE = CSV "
        r"FIELD_OPTIONALLY_ENCLOSED_BY = '\"' ESCAPE = '\\' NULL_IF = ('\\N', ''))"
    )
    assert isinstance(snowflake.format, CsvFormat)
    assert (snowflake.format.escape, snowflake.format.null_if) == ("\\", ("\\N", ""))
    databricks = parse(
        "COPY INTO t FROM 's3://b/in/' FILEFORMAT = CSV "
        r"""FORMAT_OPTIONS ('quote' = '"', 'escape' = '"', 'nullValue' = '\\N')"""
    )
    assert isinstance(databricks.format, CsvFormat)
    assert (databricks.format.escape, databricks.format.null_if) == ('"', ("\\N",))


def test_an_escape_that_cannot_be() -> None:
    """An escape that is a delimiter, or a style nobody has, is refused before anything is read."""
    with pytest.raises(InvalidInput, match="ESCAPE"):
        CsvFormat(escape=",")
    with pytest.raises(InvalidInput, match="ESCAPE_STYLE"):
        build_format("csv", {"escape_style": "oracle"})
