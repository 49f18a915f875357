"""Exact records of delimited text: where each begins and ends, and its fields with positions.

A quote means something at the beginning of a field only; there the field runs to the closing quote,
over line ends if need be. This is the slow and exact reading: the quick one is pyarrow's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from calque.loader.model.file_formats import CsvFormat, EscapeStyle
from calque.loader.run.formats.delimited.escapes import Unescape, escaped_pattern, unescaper
from calque.loader.run.formats.refusal import Code


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its bytes without quotes and escapes, whether it was quoted, where it begins."""

    value: bytes
    quoted: bool
    start: int
    spelled: bytes
    """With its escapes: ``\\N`` is a marker of NULL, ``\\\\N`` is text that looks like one."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record from ``start`` to ``end`` (its delimiter included), sound or not."""

    start: int
    end: int
    broken: Code | None = None


@dataclass(frozen=True)
class Dialect:
    """How a file of delimited text is laid out, in bytes."""

    delimiter: bytes
    record_delimiter: bytes
    quote: bytes | None
    escape: bytes | None
    comment: bytes | None
    skip_blank_lines: bool
    escape_style: EscapeStyle = "literal"
    keeps_returns: bool = False
    """A line ends in a line feed alone; a carriage return before it is data."""
    markers: tuple[bytes, ...] = ()
    """Spellings of NULL."""

    @classmethod
    @lru_cache(64)
    def of(cls, format: CsvFormat, record_delimiter: bytes) -> Dialect:
        return cls(
            delimiter=format.field_delimiter.encode(),
            record_delimiter=record_delimiter,
            quote=format.quote.encode() if format.quote else None,
            # An escape that is the quote says what holds anyway: quotes are doubled.
            escape=format.escape.encode() if format.escape not in (None, format.quote) else None,
            comment=format.comment.encode() if format.comment else None,
            skip_blank_lines=format.skip_blank_lines,
            escape_style=format.escape_style,
            keeps_returns=format.escape_style == "mysql" and format.record_delimiter == "\n",
            markers=tuple(marker.encode() for marker in format.null_if),
        )

    @property
    def is_plain(self) -> bool:
        """pyarrow can read it: single bytes, and lines that end as lines do."""
        lines = self.record_delimiter in (b"\n", b"\r", b"\r\n")
        single = len(self.delimiter) == 1 and len(self.quote or b"x") == 1
        return lines and single and len(self.escape or b"x") == 1

    @cached_property
    def end(self) -> bytes:
        """A record's end as a pattern."""
        lenient = self.record_delimiter == b"\n" and not self.keeps_returns
        return rb"\r?\n" if lenient else re.escape(self.record_delimiter)

    # The patterns are unrolled and their alternatives exclude each other, so that a record that
    # does not match is given up at once. Possessive quantifiers would say the same more briefly,
    # but Python 3.11.0 to 3.11.4 gets them wrong.

    @cached_property
    def _field(self) -> bytes:
        bare = self._bare(self.escape)
        if self.quote is None:
            return bare
        return (
            rb"(?:"
            + self._quoted_field
            + bare
            + rb"|(?!"
            + re.escape(self.quote)
            + rb")"
            + bare
            + rb")"
        )

    def _bare(self, escape: bytes | None) -> bytes:
        """What stands before the next delimiter or record end, escaped ones passed over."""
        ends = rb"\r\n" if self.record_delimiter == b"\n" else _first(self.record_delimiter)
        stops = [re.escape(self.delimiter), self.end]
        return self._unroll(_first(self.delimiter) + ends, stops, escape)

    @cached_property
    def _quoted_field(self) -> bytes:
        assert self.quote is not None
        quote = re.escape(self.quote)
        inside = self._unroll(_first(self.quote), [quote], self.escape, kept=quote + quote)
        return quote + inside + quote + rb"(?!" + quote + rb")"

    def _unroll(
        self, first: bytes, stops: list[bytes], escape: bytes | None, kept: bytes | None = None
    ) -> bytes:
        """Everything up to one of ``stops``, whose first bytes are the class ``first``.

        Bytes outside the class run on; one of the class passes where it is escaped, ``kept``, or
        begins no stop after all.
        """
        passes = [kept] if kept else []
        if escape:
            first += _first(escape)
            passed = re.escape(escape) + escaped_pattern(self.escape_style)
            passes.append(passed)
            stops = [*stops, passed]
        passes.append(rb"(?!" + rb"|".join(stops) + rb")[" + first + rb"]")
        run = rb"[^" + first + rb"]*"
        return run + rb"(?:(?:" + rb"|".join(passes) + rb")" + run + rb")*"

    @cached_property
    def record_pattern(self) -> re.Pattern[bytes]:
        delimiter = re.escape(self.delimiter)
        body = self._field + rb"(?:" + delimiter + self._field + rb")*"
        return re.compile(body + rb"(?:(?P<end>" + self.end + rb")|\Z)", re.DOTALL)

    @cached_property
    def field_pattern(self) -> re.Pattern[bytes]:
        if self.quote is None:
            return re.compile(rb"(?P<bare>" + self._field + rb")", re.DOTALL)
        return re.compile(
            rb"(?P<quoted>" + self._quoted_field + rb")(?P<junk>" + self._bare(None) + rb")"
            rb"|(?P<bare>" + self._field + rb")",
            re.DOTALL,
        )

    @cached_property
    def line_pattern(self) -> re.Pattern[bytes]:
        return re.compile(self.end)

    @cached_property
    def _pair(self) -> re.Pattern[bytes]:
        """Two quotes that open and close a field, or stand on both sides of a doubled one."""
        assert self.quote is not None
        quote = re.escape(self.quote)
        inside = rb"[^\r\n" + re.escape(self.delimiter) + quote + rb"]"
        around = rb"(?<!" + inside + quote + rb")[^" + quote + rb"]*" + quote + rb"(?!" + inside
        return re.compile(quote + around + rb")()")

    def quotes_pair(self, data: bytes, end: int) -> bool:
        """Every quote up to ``end`` opens or closes a field, by turns; there ``end`` is outside.

        For single-byte delimiters and text without escapes. Text that is sound but has quotes
        inside of bare fields is not told from broken text.
        """
        quote = self.quote
        if quote is None or data.find(quote, 0, end) < 0:
            return True
        count = data.count(quote, 0, end)
        return count % 2 == 0 and len(self._pair.findall(data, 0, end)) * 2 == count

    def records(self, data: bytes, start: int, final: bool) -> Iterator[Record]:
        """The records of ``data`` from ``start``. The last, if cut, is given only when ``final``.

        A record whose quotes are broken is given up to the end of its first line, so that one bad
        line costs one record and not the rest of the file.
        """
        while start < len(data):
            match = self.record_pattern.match(data, start)
            if match is None:
                if not final:
                    return
                record = Record(start, self._line_end(data, start), Code.UNTERMINATED_QUOTE)
            elif not final and match.group("end") is None:  # an escaped line end is none
                return
            else:
                record = self._check_quotes(data, start, match.end())
            if not self._is_skipped(data, record):
                yield record
            start = record.end

    def fields(self, data: bytes, record: Record) -> list[Field]:
        """The fields of a sound record."""
        found: list[Field] = []
        position = record.start
        stop = self._content_end(data, record)
        while True:
            match = self.field_pattern.match(data, position, stop)
            assert match is not None, "a sound record is made of fields"
            found.append(self._field_of(match))
            position = match.end() + len(self.delimiter)
            if match.end() >= stop:
                return found

    def raw(self, data: bytes, record: Record) -> bytes:
        """The bytes of a record without its delimiter."""
        return data[record.start : self._content_end(data, record)]

    def lines_in(self, data: bytes, start: int, end: int) -> int:
        """Physical lines that end between two positions."""
        newline = b"\r" if self.record_delimiter == b"\r" else b"\n"
        return data.count(newline, start, end)

    def _check_quotes(self, data: bytes, start: int, end: int) -> Record:
        record = Record(start, end)
        if self.quote is None or data.find(self.quote, start, end) < 0:
            return record
        for match in self._field_matches(data, record):
            if match.lastgroup == "junk" and match.group("junk"):
                return Record(start, self._line_end(data, start), Code.BAD_QUOTE)
        return record

    def _field_matches(self, data: bytes, record: Record) -> Iterator[re.Match[bytes]]:
        position, stop = record.start, self._content_end(data, record)
        while True:
            match = self.field_pattern.match(data, position, stop)
            if match is None:
                return
            yield match
            if match.end() >= stop:
                return
            position = match.end() + len(self.delimiter)

    def _field_of(self, match: re.Match[bytes]) -> Field:
        quoted = match.group("quoted") if self.quote is not None else None
        if quoted is None:
            bare = match.group("bare")
            return Field(self._unescape(bare), False, match.start(), bare)
        assert self.quote is not None
        size = len(self.quote)
        inner = quoted[size:-size].replace(self.quote * 2, self.quote)
        return Field(self._unescape(inner), True, match.start(), inner)

    def _unescape(self, value: bytes) -> bytes:
        if self.escape is None or self.escape not in value:
            return value
        return self._unescaper(value)

    @cached_property
    def _unescaper(self) -> Unescape:
        assert self.escape is not None
        ends = (b"\r\n", b"\r", b"\n") if self.record_delimiter in (b"\n", b"\r") else ()
        marks = (self.quote, self.comment, self.delimiter, self.record_delimiter, *ends)
        specials = {part for mark in marks if mark for part in (mark, _first_character(mark))}
        return unescaper(self.escape_style, self.escape, tuple(specials))

    def escapes_in(self, data: bytes, end: int) -> bool:
        """Whether an escape up to ``end`` changes something; fields that are ``\\N`` do not count.

        Dumps of databases are full of those.
        """
        if self.escape is None or data.find(self.escape, 0, end) < 0:
            return False
        if self.quote is not None and data.find(self.quote, 0, end) >= 0:
            return True
        found = self._marker_pattern.findall(data, 0, end) if self._marker_pattern else ()
        return data.count(self.escape, 0, end) != len(found)

    @cached_property
    def _marker_pattern(self) -> re.Pattern[bytes] | None:
        """Fields that are a marker of NULL with one escape."""
        marks = [mark for mark in self.markers if self.escape and mark.count(self.escape) == 1]
        if not marks:
            return None
        around = re.escape(self.delimiter) + rb"|" + re.escape(self.record_delimiter)
        spelled = rb"|".join(map(re.escape, marks))
        before = rb"(?:\A|(?<=" + re.escape(self.delimiter) + rb")|(?<="
        before += re.escape(self.record_delimiter) + rb"))"
        return re.compile(before + rb"(?:" + spelled + rb")(?=\r?(?:" + around + rb"|\Z))")

    def _is_skipped(self, data: bytes, record: Record) -> bool:
        if self.comment is not None and data.startswith(self.comment, record.start):
            return True
        if self.escape_style == "postgresql" and data.startswith(b"\\.", record.start):
            return self.raw(data, record) == b"\\."  # the end of data, as COPY marks it
        return self.skip_blank_lines and self._content_end(data, record) == record.start

    def _line_end(self, data: bytes, start: int) -> int:
        match = self.line_pattern.search(data, start)
        return match.end() if match else len(data)

    def _content_end(self, data: bytes, record: Record) -> int:
        end = record.end
        if data.endswith(self.record_delimiter, record.start, end):
            end -= len(self.record_delimiter)
            if self.end == rb"\r?\n" and data.endswith(b"\r", record.start, end):
                end -= 1
        return end


def text_of(
    field: Field, format: CsvFormat, nulls: frozenset[str], errors: str = "strict"
) -> str | None:
    """A field as text; None where it is a marker of NULL, which is told before escapes are."""
    text = field.value.decode("utf-8", errors)
    spelled = text if field.spelled == field.value else field.spelled.decode("utf-8", errors)
    if format.trim_space and not field.quoted:
        text, spelled = text.strip(), spelled.strip()
    if field.quoted and not format.quoted_nulls:
        return text
    if spelled in nulls or (not spelled and format.empty_field_as_null):
        return None
    return text


def _first_character(mark: bytes) -> bytes:
    return mark.decode()[:1].encode()


def _first(text: bytes) -> bytes:
    """The first byte of a delimiter, for a class of bytes."""
    return re.escape(text[:1])
