"""What the heads of delimited files tell of their dialect: evidence, and never a guess.

Delimiter, quote, header and encoding are told where every other reading contradicts the files.
Where two readings hold, :class:`Ambiguous` says which option settles it.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow as pa

from calque.errors import StatementInvalid
from calque.loader.model.file_formats import CsvFormat
from calque.loader.run.formats.byte_buffer import ByteBuffer
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.cast.text import cast_text
from calque.loader.run.formats.compression import open_stream
from calque.loader.run.formats.csv.reader import CsvReader
from calque.loader.run.formats.delimited.dialect import Dialect
from calque.loader.run.formats.reader import ReadSpec
from calque.loader.run.formats.staged_source import Source
from calque.values import KIB

DELIMITERS = (",", ";", "\t", "|")
_HEAD = 128 * KIB
_RECORDS = 1000
"""What a thousand records do not tell, more of them rarely do."""
_TYPES = (
    pa.int64(),
    pa.float64(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
)
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_NOT_WRITTEN = ("Cc", "Cn", "Co", "Cs")
_SEPARATORS = set("\t\n\r\x01\x1c\x1d\x1e\x1f")
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

Rows = Sequence[Sequence[str]]


class Ambiguous(StatementInvalid):
    """The files can be read in several ways: the user must say which is meant."""


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file, as UTF-8, after the lines that are to be skipped."""

    location: str
    data: bytes
    whole: bool
    record_delimiter: bytes

    def rows(self, format: CsvFormat) -> list[list[str]]:
        """The sound records of the head, as this format reads them."""
        dialect = Dialect.of(format, self.record_delimiter)
        records = islice(dialect.records(self.data, 0, final=self.whole), _RECORDS)
        return [
            [field.value.decode("utf-8", "replace") for field in dialect.fields(self.data, record)]
            for record in records
            if record.broken is None
        ]


def recognise_encoding(source: Source, format: CsvFormat) -> str | None:
    """The encoding that a byte order mark or the places of zero bytes tell; None: perhaps UTF-8."""
    plain = open_stream(source.location, source.stream(), format.compression)
    buffer = ByteBuffer(plain)
    buffer.fill(_HEAD)
    head = buffer.data[:_HEAD]
    marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    told = [name for name in _WIDE if _is_wide_text(head, name)]
    return marked or (told[0] if len(told) == 1 else None)


def _is_wide_text(head: bytes, encoding: str) -> bool:
    """Whether these bytes are text in an encoding of two or four bytes a character.

    Text has no zero bytes in UTF-8 or any older encoding; in the wide ones delimiters and line ends
    have them. Read in the wrong order of bytes those are no characters, or none of ASCII.
    """
    if b"\0" not in head:
        return False
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    strange = {one for one in set(text) if unicodedata.category(one) in _NOT_WRITTEN}
    return strange <= _SEPARATORS and any(" " <= one <= "~" for one in text)


def require_utf8(heads: Sequence[Head], *, by_all: bool) -> None:
    """Raise Ambiguous where files are in an encoding that nothing tells.

    ``by_all``: only if no file can be read as it is. Else bad rows are left to the error policy.
    """
    foreign = [head for head in heads if _is_foreign(head.data)]
    if not foreign or (by_all and len(foreign) < len(heads)):
        return
    raise Ambiguous(
        f"{foreign[0].location}: these bytes are not UTF-8, and nothing tells their encoding",
        hint="Say it: --encoding cp1252 (ENCODING), or another. With --encoding utf-8 the rows "
        "that are none are errors.",
    )


def _is_foreign(data: bytes) -> bool:
    """Whether more of what is beyond ASCII is no UTF-8 than is."""
    if data.isascii():
        return False
    beyond = [one for one in data.decode("utf-8", "surrogateescape") if one > "\x7f"]
    return 2 * sum("\udc80" <= one <= "\udcff" for one in beyond) > len(beyond)


def read_head(source: Source, format: CsvFormat) -> Head | None:
    """The head of a file; None of one that has no records."""
    reader = CsvReader(
        source, ReadSpec(format=replace(format, parse_header=False), schema=pa.schema([]))
    )
    buffer, dialect, _ = reader.prologue()
    if dialect is None:
        return None
    buffer.fill(_HEAD)
    data, whole = buffer.data, buffer.ended
    if not whole:  # to the last line end, lest a record be taken for a short one
        data = data[: data.rfind(dialect.record_delimiter) + 1] or data
    return Head(source.location, data, whole, dialect.record_delimiter) if data else None


def recognise_delimiter(heads: Sequence[Head], format: CsvFormat) -> str:
    """The only delimiter that gives all records, or nearly all, one number of fields."""
    taken = {format.record_delimiter, format.quote, format.escape, format.comment}
    if format.decimal_point != ".":
        taken |= {format.decimal_point, format.thousands_separator}
    free = [one for one in DELIMITERS if one not in taken]
    found = {one: _widths(heads, replace(format, field_delimiter=one)) for one in free}
    met = [one for one, widths in found.items() if max(widths, default=1) > 1]
    if len(met) < 2:
        return met[0] if met else format.field_delimiter
    even = [one for one in met if _usual_share(found[one]) >= 0.9]
    if len(even) == 1:
        return even[0]
    most = [one for one in met if _usual_share(found[one]) > 0.5]
    if not even and len(most) == 1:
        return most[0]
    names = " or ".join(repr(one) for one in even or met)
    raise Ambiguous(
        f"{heads[0].location}: fields may be separated by {names}",
        hint="Say which: --delimiter ';' (FIELD_DELIMITER).",
    )


def _widths(heads: Sequence[Head], format: CsvFormat) -> Counter[int]:
    return Counter(len(row) for head in heads for row in head.rows(format))


def _usual_share(widths: Counter[int]) -> float:
    """How many of the records have the usual number of fields; 0 where that is a single one."""
    (width, count), total = widths.most_common(1)[0], widths.total()
    return count / total if width > 1 else 0.0


def recognise_quote(heads: Sequence[Head], format: CsvFormat) -> str | None:
    """The apostrophe where it encloses fields in every record and the usual quote in none."""
    bare = replace(format, quote=None)
    rows = [row for head in heads for row in head.rows(bare)]
    usual = sum(1 for row in rows if any(_is_enclosed(field, '"') for field in row))
    other = sum(1 for row in rows if any(_is_enclosed(field, "'") for field in row))
    return "'" if rows and not usual and other >= 0.9 * len(rows) else format.quote


def _is_enclosed(field: str, quote: str) -> bool:
    return len(field) > 1 and field.startswith(quote) and field.endswith(quote)


def recognise_header(heads: Sequence[Head], format: CsvFormat, columns: Sequence[str] = ()) -> bool:
    """Whether the first records name the columns. ``columns``: those of a table that is there."""
    files = [rows for head in heads if (rows := head.rows(format))]
    if not files:
        return True
    votes = set(_header_votes(files, format, columns))
    if len(votes) == 1:
        return votes.pop()
    first = format.field_delimiter.join(files[0][0])
    raise Ambiguous(
        f"{heads[0].location}: line {format.skip_header + 1} may name the columns or be a row: "
        f"{first[:100]!r}",
        hint="Say it: --header or --no-header (PARSE_HEADER = TRUE or FALSE).",
    )


def _header_votes(
    files: Sequence[Rows], format: CsvFormat, columns: Sequence[str]
) -> Iterator[bool]:
    """What each piece of evidence says; nothing where there is none."""
    known = {name.casefold() for name in columns}
    firsts = [[field.strip() for field in rows[0]] for rows in files]
    if known and all(
        _can_be_names(first) and set(map(str.casefold, first)) & known for first in firsts
    ):
        yield True
        return
    rules = CastRules.of(format)
    empty = {"", *format.null_if}
    for rows in files:
        yield from _votes_of_file(rows, rules, empty)
    if len(files) > 1 and all(first == firsts[0] for first in firsts) and _can_be_names(firsts[0]):
        again = any(list(row) == files[0][0] for rows in files for row in rows[1:])
        if not again:
            yield True


def _votes_of_file(rows: Rows, rules: CastRules, empty: set[str]) -> Iterator[bool]:
    """A first field that has not the type of its column speaks for names, one that has against."""
    first, rest = rows[0], rows[1:]
    if not rest:
        if any(_type_of([field], rules) for field in first if field not in empty):
            yield False  # nobody names a column 1 or 2026-01-01
        return
    named = _can_be_names(first)
    for index, field in enumerate(first):
        column = [row[index] for row in rest if index < len(row) and row[index] not in empty]
        kind = _type_of(column, rules) if column else None
        if kind is None or field in empty:
            continue
        if _is_all([field], kind, rules):
            yield False
        elif named and _type_of([field], rules) is None:
            yield True


def _type_of(texts: Sequence[str], rules: CastRules) -> pa.DataType | None:
    """A type other than text that all of these are spelled as."""
    kinds = [pa.time64("us"), *_TYPES] if rules.time_format is not None else _TYPES
    return next((kind for kind in kinds if _is_all(texts, kind, rules)), None)


def _is_all(texts: Sequence[str], kind: pa.DataType, rules: CastRules) -> bool:
    return not cast_text(pa.array(texts, pa.string()), kind, rules).refused


def _can_be_names(fields: Sequence[str]) -> bool:
    """Whether these could name columns: none empty, none twice."""
    folded = [field.strip().casefold() for field in fields]
    return all(folded) and len(set(folded)) == len(folded)
