"""Between the two parsers of NDJSON: lines that the quick one would refuse are set apart.

Whatever stands in a line that is set apart, the exact parser says what it is: a line may be
suspected wrongly, at the cost of a few microseconds. What is left is read quickly.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

import pyarrow as pa

from calque.loader.run.formats.delimited.blocks import Block
from calque.loader.run.formats.json.exact import ExactParser, RawRecord
from calque.loader.run.formats.json.quick import QuickParser
from calque.loader.run.formats.reader import Extent, ParsedBatch

ROUNDS = 16
"""Attempts at a block; one that still fails is read line by line."""

_COLUMN = re.compile(r"Column\(/([^/)]+)")
_ROW = re.compile(r"in row (\d+)$")
_BLANK = re.compile(rb"\n[ \t\r\f\v]*\n")
_LINE_END = re.compile(rb"\n")
_NO_OBJECTS = ""
"""Learned in place of a column: lines that are no objects."""


class MixedParser:
    """Reads blocks of one file with refused lines in them.

    ``learned`` are the columns (by the table's names) whose values were refused lately: they are
    looked at before anything is parsed.
    """

    def __init__(self, quick: QuickParser, exact: ExactParser, learned: set[str]) -> None:
        self._quick = quick
        self._exact = exact
        self._learned = learned
        self._suspect = {
            field.name: _suspect_pattern(name, field.type) for name, field in quick.columns
        }
        self._names = {name: field.name for name, field in quick.columns}

    def parse(self, block: Block, before: Extent, room: int) -> ParsedBatch | None:
        """Rows and errors; None where the whole block must be read line by line."""
        text = _BlockLines(block)
        if text.has_blank_lines:
            return None
        apart = {text.start(at) for at in self._quick.find_misleading_numbers(block)}
        apart.update(at for name in self._learned for at in self._suspects(name, text))
        for _ in range(ROUNDS):
            kept = text.without(apart)
            try:
                cast = self._quick.cast_rows(self._quick.read(kept.data), text.count - len(apart))
            except pa.ArrowInvalid as error:
                more = self._lines_blamed(str(error), kept, text) - apart
                if not more:
                    return None
                apart |= more
                continue
            if cast is None:
                return None
            self._learned.update(cell_error.column for cell_error in cast.cell_errors)
            apart.update(kept.origin(cell_error.row) for cell_error in cast.cell_errors)
            return self._join(cast.rows, sorted(apart), text, before, room)
        return None

    def _join(
        self, rows: pa.RecordBatch, apart: list[int], text: _BlockLines, before: Extent, room: int
    ) -> ParsedBatch:
        """What was read quickly, and what the exact parser makes of the rest, in their order."""
        numbers = text.numbers(apart)
        lines = [
            RawRecord(before.lines + number + 1, text.offset + at, text.line(at))
            for number, at in zip(numbers, apart, strict=True)
        ]
        read = self._exact.read(numbers, lines, before.records, text.count, room)
        if not read.rejected:
            self._learned.clear()
        if read.rows.num_rows:
            found = set(numbers).difference(read.rejected)
            rows = _interleave(rows, read.rows, sorted(found), set(read.rejected))
        return ParsedBatch(rows, before.records + 1, text.count, read.rejected, read.errors)

    def _lines_blamed(self, message: str, kept: _KeptLines, text: _BlockLines) -> set[int]:
        """The lines that a failure of the quick parser may be about."""
        row, column = _ROW.search(message), _COLUMN.search(message)
        if row is None:
            return self._suspect_values(text)
        # What follows a complete object is told as the next row's.
        told = int(row[1])
        found = {kept.origin(at) for at in (told - 1, told) if 0 <= at < kept.count}
        name = self._names.get(column[1]) if column else _NO_OBJECTS
        if name is None:
            return found
        if name == _NO_OBJECTS and _NO_OBJECTS in self._learned:
            return found.union(text.lines_unless(_is_json))
        self._learned.add(name)
        return found.union(self._suspects(name, text))

    def _suspect_values(self, text: _BlockLines) -> set[int]:
        """A number that does not fit is told without its place: look at every column."""
        found: set[int] = set()
        for name in self._suspect:
            suspects = self._suspects(name, text)
            if suspects:
                self._learned.add(name)
                found.update(suspects)
        return found

    def _suspects(self, name: str, text: _BlockLines) -> list[int]:
        """Lines in which a column's value is not plainly sound."""
        if name == _NO_OBJECTS:
            return text.lines_unless(_is_object)
        pattern = self._suspect.get(name)
        if pattern is None:
            return []
        return [text.start(found.start()) for found in pattern.finditer(text.data)]


class _BlockLines:
    """The lines of a block, each known by the position it begins at.

    Nothing here is done for every line: a block has thousands, and few of them are looked at.
    """

    def __init__(self, block: Block) -> None:
        self.data = block.data if block.end == len(block.data) else block.data[: block.end]
        self.offset = block.offset
        self.count = _lines_in(self.data)

    @property
    def has_blank_lines(self) -> bool:
        last = self.data[self.start(len(self.data)) :]
        edges = not self.data[:1].strip() or (last and not last.strip())
        return bool(edges) or _BLANK.search(self.data) is not None

    def start(self, position: int) -> int:
        """Where the line begins that holds a byte."""
        return self.data.rfind(b"\n", 0, position) + 1

    def line(self, start: int) -> bytes:
        return self.data[start : self._end(start)].removesuffix(b"\n")

    def lines_unless(self, sound: Callable[[bytes], bool]) -> list[int]:
        """The lines that are not sound."""
        starts, at = [], 0
        for line in self.data.removesuffix(b"\n").split(b"\n"):
            if not sound(line):
                starts.append(at)
            at += len(line) + 1
        return starts

    def numbers(self, starts: Sequence[int]) -> list[int]:
        """The numbers of lines, given in order."""
        pairs = pairwise([0, *starts])
        return list(accumulate(self.data.count(b"\n", *pair) for pair in pairs))

    def without(self, apart: set[int]) -> _KeptLines:
        """The text less some of its lines."""
        starts = sorted(apart)
        begins = [0, *map(self._end, starts)]
        return _KeptLines(self.data, list(zip(begins, [*starts, len(self.data)], strict=True)))

    def _end(self, start: int) -> int:
        return self.data.find(b"\n", start) + 1 or len(self.data)


class _KeptLines:
    """Stretches of a text as one, and the way back."""

    def __init__(self, data: bytes, stretches: list[tuple[int, int]]) -> None:
        whole = len(stretches) == 1
        self.data = pa.py_buffer(data if whole else b"".join([data[a:b] for a, b in stretches]))
        self._begins = [begin for begin, _ in stretches]
        self._held = list(accumulate((end - begin for begin, end in stretches), initial=0))

    @property
    def count(self) -> int:
        return len(self._starts)

    def origin(self, row: int) -> int:
        """Where the line of a row begins in the whole text."""
        start = self._starts[row]
        stretch = bisect_right(self._held, start) - 1
        return self._begins[stretch] + start - self._held[stretch]

    @cached_property
    def _starts(self) -> list[int]:
        data = self.data.to_pybytes()
        return [0, *(found.end() for found in _LINE_END.finditer(data) if found.end() < len(data))]


def _interleave(
    quick: pa.RecordBatch, slow: pa.RecordBatch, numbers: list[int], rejected: set[int]
) -> pa.RecordBatch:
    """Rows of both parsers in the order of their lines; ``numbers`` are those of the slow one's."""
    count = quick.num_rows + slow.num_rows + len(rejected)
    among = set(numbers)
    order = [at for at in range(count) if at not in among and at not in rejected] + numbers
    rows = pa.Table.from_batches([quick, slow]).take(
        pa.array(sorted(range(len(order)), key=order.__getitem__))
    )
    return rows.combine_chunks().to_batches()[0]


def _lines_in(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n"))


def _is_object(text: bytes) -> bool:
    text = text.strip()
    return text.startswith(b"{") and text.endswith(b"}")


def _is_json(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _suspect_pattern(name: str, kind: pa.DataType) -> re.Pattern[bytes]:
    """Finds the key with a value that is not plainly one of its type."""
    key = re.escape(json.dumps(name, ensure_ascii=False).encode())
    return re.compile(rb"%b\s*:\s*(?!\s|%b|null)" % (key, _plain_pattern(kind)))


def _plain_pattern(kind: pa.DataType) -> bytes:
    """How a value of the type is commonly spelled, short enough to fit for certain."""
    end = rb"\s*[,}]"
    if pa.types.is_integer(kind):
        digits = {8: 2, 16: 4, 32: 9, 64: 18}[kind.bit_width]
        sign = b"-?" if pa.types.is_signed_integer(kind) else b""
        return rb"%b\d{1,%d}%b" % (sign, digits, end)
    if pa.types.is_decimal(kind):
        fraction = rb"(?:\.\d{1,%d})?" % kind.scale if kind.scale > 0 else b""
        return rb'"?-?\d{1,%d}%b"?%b' % (max(1, kind.precision - kind.scale), fraction, end)
    if pa.types.is_floating(kind):
        return rb"-?\d{1,30}(?:\.\d+)?%b" % end
    if pa.types.is_boolean(kind):
        return b"true|false"
    return rb"[\[{]" if pa.types.is_nested(kind) else b'"'
