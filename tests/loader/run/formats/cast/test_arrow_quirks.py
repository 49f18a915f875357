"""Decimals that pyarrow gets wrong without a word never reach a table, whatever they come from."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.loader.model.file_formats import (
    CsvFormat,
    FormatOptions,
    JsonFormat,
    ParquetFormat,
    XmlFormat,
)
from calque.loader.run.formats import Code
from calque.loader.run.formats.cast.arrow_quirks import misleading_numbers
from calque.loader.run.formats.cast.columns import cast_column
from calque.loader.run.formats.cast.python_values import column_of
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.delimited.blocks import Block
from calque.loader.run.formats.json.exact import ExactParser
from calque.loader.run.formats.json.mixed import MixedParser
from calque.loader.run.formats.json.quick import QuickParser
from calque.loader.run.formats.reader import Extent, ReadSpec
from tests.loader.run.formats.conftest import Read

WRAPPED = "43760377052179921974530648587534505"
"""As DECIMAL(38, 4) it has 39 digits; pyarrow makes 9732140360086075628193187844357683.8544."""
RAISED = "4376037705217992197453064858753450e1"


def parquet(values: pa.Array) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"a": values}), out)
    return out.getvalue()


Written = Callable[[str], bytes]
WAYS: dict[str, tuple[FormatOptions, Written]] = {
    "csv": (CsvFormat(skip_header=1), lambda text: f"a,b\n{text},1\n1.5,1\n".encode()),
    "json": (JsonFormat(), lambda text: f'{{"a": {text}}}\n{{"a": 1.5}}\n'.encode()),
    "json text": (JsonFormat(), lambda text: f'{{"a": "{text}"}}\n{{"a": "1.5"}}\n'.encode()),
    "json escapes": (
        JsonFormat(),
        lambda text: f'{{"a": "{spell_by_escapes(text)}"}}\n{{"a": 1.5}}\n'.encode(),
    ),
    "json array": (
        JsonFormat(strip_outer_array=True),
        lambda text: f'[{{"a": {text}}}, {{"a": 1.5}}]'.encode(),
    ),
    "xml": (
        XmlFormat(),
        lambda text: f"<rows><row><a>{text}</a></row><row><a>1.5</a></row></rows>".encode(),
    ),
    "parquet text": (ParquetFormat(), lambda text: parquet(pa.array([text, "1.5"]))),
    "parquet decimals": (
        ParquetFormat(),
        lambda text: parquet(pa.array([Decimal(text), Decimal("1.5")], pa.decimal128(38, 1))),
    ),
}


def spell_by_escapes(text: str) -> str:
    return "".join(f"\\u{ord(one):04x}" for one in text)


@pytest.mark.parametrize("number", [WRAPPED, "-" + WRAPPED, RAISED])
@pytest.mark.parametrize("way", WAYS)
def test_a_number_that_would_wrap_around_is_refused(read: Read, way: str, number: str) -> None:
    """Digits before the point that leave no room for the column's places, in every format."""
    format, written = WAYS[way]
    fields = [("a", pa.decimal128(38, 4))]
    if way == "csv":
        fields.append(("b", pa.int64()))
    match = "position" if way == "csv" else "name"
    result = read(written(number), format, fields, match=match, name="f")
    assert [error.code for error in result.errors] == [Code.OUT_OF_RANGE]
    assert [row["a"] for row in result.rows] == [Decimal("1.5")]


signs = st.sampled_from(["", "-"])
digits = st.text("0123456789", min_size=1, max_size=30).map(lambda text: text.lstrip("0") or "0")
numbers = st.builds("".join, st.tuples(signs, digits)) | st.builds(
    lambda sign, whole, rest: f"{sign}{whole}{rest}",
    signs,
    digits,
    digits.map(lambda text: f".{text[:12]}") | st.integers(-40, 40).map(lambda e: f"e{e}"),
)
kinds = st.integers(0, 38).map(lambda scale: pa.decimal128(38, scale)) | st.builds(
    lambda precision, scale: pa.decimal128(precision, min(precision, scale)),
    st.integers(1, 38),
    st.integers(0, 38),
)
EXACT = Context(prec=2000)


@settings(max_examples=300, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=4), kinds)
def test_text_becomes_the_number_it_spells(texts: list[str], kind: pa.DataType) -> None:
    """A cell of text is the very number in its column, or refused: for any decimal type."""
    made = cast_column(pa.array(texts), kind, CastRules.of(CsvFormat()))
    exact = column_of([EXACT.create_decimal(text) for text in texts], kind)
    assert [one.row for one in made.refused] == [one.row for one in exact.refused]
    assert made.values.to_pylist() == exact.values.to_pylist()


@settings(max_examples=300, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=4), kinds, st.booleans())
def test_json_becomes_the_number_it_spells(
    texts: list[str], kind: pa.DataType, nested: bool
) -> None:
    """The quick ways through NDJSON give what the exact one gives, decimals in lists as well."""
    shown = [f"[{text}]" if nested else text for text in texts]
    data = "".join(f'{{"a": {one}}}\n' for one in shown).encode()
    schema = pa.schema([("a", pa.list_(kind) if nested else kind)])
    spec = ReadSpec(format=JsonFormat(), schema=schema, match="name")
    block, exact = Block(data, len(data), 0, True), ExactParser(spec, "f")
    quick = QuickParser(spec, {})
    careful = exact.parse(block, Extent(), 100)
    found = [
        quick.parse(block, Extent()),
        MixedParser(quick, exact, set()).parse(block, Extent(), 9),
    ]
    for one in found:
        if one is not None:
            assert one.rejected == careful.rejected
            assert one.rows.to_pylist() == careful.rows.to_pylist()


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        (rb'{"a": "1\u0065-999999999"}', True),
        (rb'{"a":[1, "\u002d1e-999999999"]}', True),
        (b'{"a" :\t1E-999999999}', True),
        (b'{"a": 1e-999999999}', True),
        (b'{"ab": 1e-999999999}', True),
        (b"", False),
        (b'{"a": 12345.125}', False),
        (rb'{"a": 1.5, "id": "9b4e50e4-1e9e-4e2e", "t": "caf\u00e9 \u0041"}', False),
    ],
)
def test_what_crashes_pyarrow_is_set_apart(text: bytes, is_found: bool) -> None:
    """However a number is spelled, its line is not given to pyarrow; usual text is."""
    assert any(misleading_numbers(text, scale=2)) is is_found
