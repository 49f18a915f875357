"""The quick and the exact parser say the same; pieces of a file say the same as the whole."""

from __future__ import annotations

import csv
import io
import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.loader.model.file_formats import CsvFormat
from calque.loader.model.plan import Piece
from calque.loader.run.formats import ReadSpec, Source, open_reader
from calque.loader.run.formats.byte_buffer import ByteBuffer
from calque.loader.run.formats.cast.row_caster import RowCaster
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.column_map import by_position
from calque.loader.run.formats.csv.exact import ExactParser
from calque.loader.run.formats.csv.quick import QuickParser
from calque.loader.run.formats.delimited.blocks import Block, cut_blocks
from calque.loader.run.formats.delimited.dialect import Dialect
from calque.loader.run.formats.reader import Extent, shift_error
from tests.loader.run.formats.conftest import Read, Result, Stage

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("d", pa.decimal128(12, 3)),
        ("t", pa.timestamp("us")),
        ("b", pa.bool_()),
        ("s", pa.string()),
    ]
)
FORMAT = CsvFormat()

plain_text = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs",), exclude_characters="\r\x00"),
    max_size=12,
)
cells = st.tuples(
    st.integers(-(2**31), 2**31 - 1).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-(10**9) + 1, 10**9 - 1, places=3).map(str),
    st.datetimes().map(lambda moment: moment.isoformat(sep=" ")),
    st.sampled_from(["true", "false", "1", "0"]),
    plain_text,
)
broken = st.tuples(
    st.one_of(st.sampled_from(["x", "", "2147483648", "1.5", " 7 ", "0x1F", "+3"]), plain_text),
    st.sampled_from(["1e400", "inf", "abc", "", "5.", ".5", "-1e-3"]),
    st.sampled_from(["1.2345", "99999999999", "1e2", "", "abc"]),
    st.sampled_from(["2024-02-30", "2024-01-01", "2024-01-01 10:00:00Z", "", "1:00"]),
    st.sampled_from(["yes", "TRUE", "", "0"]),
    plain_text,
)


def written(rows: list[tuple[str, ...]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_MINIMAL).writerows(rows)
    return out.getvalue().encode()


def both(data: bytes) -> tuple[object, object]:
    dialect = Dialect.of(FORMAT, b"\n")
    mapped = by_position(SCHEMA, ())
    caster = RowCaster(SCHEMA, CastRules.of(FORMAT))
    block = Block(data, len(data), 0, True)
    exact = ExactParser(FORMAT, dialect, mapped, caster, "f").parse(block, Extent(), 1000)
    quick = QuickParser(FORMAT, dialect, mapped, caster, "f").parse(block, Extent(), 1000)
    return exact, quick


@settings(max_examples=150, deadline=None)
@given(st.lists(cells, min_size=1, max_size=20))
def test_agree_on_clean_data(rows: list[tuple[str, ...]]) -> None:
    """What the quick parser reads, the exact one reads too, value by value."""
    exact, quick = both(written(rows))
    assert exact[0].rejected == ()  # type: ignore[index]
    if quick is not None:
        assert quick[0].rows.equals(exact[0].rows)  # type: ignore[index]
        assert quick[1] == exact[1]  # type: ignore[index]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(cells, broken), min_size=1, max_size=20))
def test_agree_on_dirty_data(rows: list[tuple[str, ...]]) -> None:
    """Both refuse the same records, for the same reasons, at the same places."""
    exact, quick = both(written(rows))
    if quick is not None:
        assert quick[0].rows.equals(exact[0].rows)  # type: ignore[index]
        assert quick[0].rejected == exact[0].rejected  # type: ignore[index]
        assert quick[0].errors == exact[0].errors  # type: ignore[index]


PAIRS = pa.schema([("a", pa.int64()), ("b", pa.string())])
odd_lines = st.lists(
    st.sampled_from(
        [
            "1,a",
            '1,"a"',
            '1,"a\nb"',
            '1,"a""b"',
            '1,5"',
            '1,"a',
            "x,1",
            "1",
            "1,a,b",
            "",
            '1,"a"x',
            '1,"a,b"',
            "\ufeff",
            '"1",a"b"',
            '1,"""',
            '"',
        ]
    ),
    min_size=1,
    max_size=12,
).map(lambda lines: "\n".join(lines).encode())


def parsed(data: bytes, size: int, format: CsvFormat) -> tuple[list[object], list[object]]:
    """Rows and errors of text that arrives and is cut in blocks of ``size``."""
    dialect, mapped = Dialect.of(format, b"\n"), by_position(PAIRS, ())
    caster, extent = RowCaster(PAIRS, CastRules()), Extent()
    exact = ExactParser(format, dialect, mapped, caster, "f")
    quick = QuickParser(format, dialect, mapped, caster, "f")
    feed = ByteBuffer(iter([data[at : at + size] for at in range(0, len(data), size)]))
    rows: list[object] = []
    errors: list[object] = []
    for block in cut_blocks(feed, dialect, None, size):
        found, lines = quick.parse(block, extent, 99) or exact.parse(block, extent, 99)
        extent.lines += lines
        extent.records += found.records
        rows += found.rows.to_pylist()
        # Which of the two a broken quote is called depends on what is seen behind it.
        errors += [error._replace(code="", message="") for error in found.errors]
    return rows, errors


@settings(max_examples=300, deadline=None)
@given(odd_lines, st.integers(1, 40), st.sampled_from([None, "\\"]))
def test_blocks_end_anywhere(data: bytes, size: int, escape: str | None) -> None:
    """Rows and places are those of the whole, wherever blocks end and however quotes are broken."""
    format = CsvFormat(escape=escape)
    dialect = Dialect.of(format, b"\n")
    caster, mapped = RowCaster(PAIRS, CastRules()), by_position(PAIRS, ())
    whole = Block(data, len(data), 0, True)
    exact, _ = ExactParser(format, dialect, mapped, caster, "f").parse(whole, Extent(), 99)
    expected = [error._replace(code="", message="") for error in exact.errors]
    for cut in (size, len(data) + 1):
        assert parsed(data, cut, format) == (exact.rows.to_pylist(), expected)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(cells, min_size=3, max_size=40),
    st.sets(st.integers(0, 39), max_size=4),
    st.booleans(),
)
def test_positions_of_injected_errors(
    rows: list[tuple[str, ...]], bad: set[int], wide: bool
) -> None:
    """A broken record is found at the line and byte where it was put, whatever stands around it."""
    expected, line, offset, data = [], 1, 0, b""
    for index, row in enumerate(rows):
        spoiled = (*row, "more") if wide else ("no number", *row[1:])
        text = written([spoiled if index in bad else row])
        if index in bad:
            expected.append((line, index + 1, offset))
        data += text
        line += text.count(b"\n")
        offset += len(text)
    exact, quick = both(data)
    for found in filter(None, (exact, quick)):
        places = [(e.line, e.record, e.byte_offset) for e in found[0].errors]  # type: ignore[index]
        assert places == expected


def pieces(stage: Stage, name: str, data: bytes, cuts: list[int]) -> list[Result]:
    file = stage.staged(name, data)
    bounds = [0, *sorted(cuts), len(data)]
    results = []
    for start, end in pairwise(bounds):
        source = stage.source(file, start, end - start)
        reader = open_reader(source, ReadSpec(format=FORMAT, schema=SCHEMA))
        results.append(Result(list(reader.read()), reader.extent, source))
    return results


@pytest.fixture(scope="module")
def big() -> bytes:
    chosen = random.Random(7)
    rows = []
    for number in range(3000):
        first = "oops" if chosen.random() < 0.01 else str(number)
        moment = f"2024-01-{chosen.randint(1, 28):02d} 00:00:00"
        text = "two\nlines" if chosen.random() < 0.05 else "one, line"
        rows.append((first, repr(chosen.random()), "1.5", moment, "true", text))
    return written(rows)


@pytest.mark.parametrize("seed", range(6))
def test_pieces_equal_the_whole(
    stage: Stage, read: Read, big: bytes, seed: int, tmp_path: Path
) -> None:
    """A file cut anywhere gives the same rows and, once joined, the same error places."""
    chosen = random.Random(seed)
    cuts = sorted(chosen.sample(range(1, len(big)), 5))
    whole = read(big, FORMAT, SCHEMA)
    parts = pieces(stage, "cut.csv", big, cuts)
    chained = [part for part in parts if part.extent.start < part.extent.end]
    joined = all(left.extent.end == right.extent.start for left, right in pairwise(chained))
    if not joined:
        return  # a cut inside quotes: the engine sees the gap and reads the file whole
    assert [row for part in parts for row in part.rows] == whole.rows
    lines = records = 0
    errors = []
    for part in parts:
        errors += [shift_error(error, lines, records) for error in part.errors]
        lines, records = lines + part.extent.lines, records + part.extent.records
    names = {error.file for error in errors}
    assert [(e.line, e.record, e.byte_offset) for e in errors] == [
        (e.line, e.record, e.byte_offset) for e in whole.errors
    ]
    assert len(names) == 1
    assert records == whole.extent.records


def test_later_piece_knows_the_header(stage: Stage) -> None:
    """A piece that begins in the middle of a file still matches columns by name."""
    data = b"s,i\n" + b"x,1\n" * 2_000_000
    file = stage.staged("named.csv", data)
    source: Source = stage.source(file, 4 << 20)
    assert Piece(file, 4 << 20).offset == 4 << 20
    schema = pa.schema([("i", pa.int64()), ("s", pa.string())])
    spec = ReadSpec(format=CsvFormat(parse_header=True), schema=schema, match="name")
    parsed = list(open_reader(source, spec).read())
    assert parsed[0].rows.slice(0, 1).to_pylist() == [{"i": 1, "s": "x"}]
    assert sum(batch.records for batch in parsed) == (len(data) - (4 << 20)) // 4
