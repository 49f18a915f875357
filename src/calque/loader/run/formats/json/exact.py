"""The exact parser of NDJSON: line by line, with the place of what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from calque.loader.model.file_formats import JsonFormat
from calque.loader.model.outcome import RowError
from calque.loader.run.formats.cast.python_values import column_of
from calque.loader.run.formats.cast.result import CastResult
from calque.loader.run.formats.cast.row_caster import RowCaster
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.delimited.blocks import MAX_RECORD, Block
from calque.loader.run.formats.reader import Extent, ParsedBatch, ReadSpec
from calque.loader.run.formats.refusal import CellError, Code, show_bytes

_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"\s*[{:,]?\s*")


class RawRecord(NamedTuple):
    """A record as it stands in the file: its line, its offset in the stream, its bytes."""

    line: int
    offset: int
    raw: bytes


class MalformedObject(Exception):
    """A text that is no JSON object; ``character`` counts from 1."""

    def __init__(self, message: str, character: int | None, code: Code = Code.MALFORMED) -> None:
        super().__init__(message)
        self.message = message
        self.character = character
        self.code = code


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """An object: the values of the table's columns by their names, and what has no column."""

    values: dict[str, Any]
    extra: dict[str, Any]


class ExactParser:
    """Objects of a file become rows of the table, one by one."""

    def __init__(self, spec: ReadSpec, file: str) -> None:
        assert isinstance(spec.format, JsonFormat)
        self._spec = spec
        self._format = spec.format
        self._file = file
        self._caster = RowCaster(spec.schema, CastRules.of(spec.format), spec.rescue)
        self._wanted = set(spec.columns) or set(spec.schema.names)
        self._fold: Callable[[str], str] = str.casefold if spec.match == "name_insensitive" else str
        self._keys = {self._fold(name): name for name in spec.schema.names}

    def names_of(self, data: bytes) -> dict[str, str]:
        """How the first object of a file spells the table's columns."""
        for line in data.split(b"\n", 64)[:64]:
            try:
                found = load_object(line)
            except MalformedObject:
                continue
            return {self._keys[self._fold(k)]: k for k in found if self._fold(k) in self._keys}
        return {}

    def parse(self, block: Block, before: Extent, room: int) -> ParsedBatch:
        """Rows of a block; at most ``room`` errors are described."""
        if block.broken is not None:
            return self._refuse_endless(block, before)
        lines: list[RawRecord] = []
        offset = block.offset
        for number, line in enumerate(block.data[: block.end].split(b"\n"), before.lines + 1):
            if line.strip():
                lines.append(RawRecord(number, offset, line))
            offset += len(line) + 1
        return self.read(range(len(lines)), lines, before.records, len(lines), room)

    def read(
        self,
        origin: Sequence[int],
        found: Sequence[RawRecord],
        before: int,
        records: int,
        room: int,
    ) -> ParsedBatch:
        """Rows of the records ``found``, whose positions among the ``records`` of a block are
        ``origin``; at most ``room`` errors are described."""
        objects: list[ObjectRow] = []
        sound: list[int] = []
        errors: dict[int, RowError | None] = {}
        for at, (index, one) in enumerate(zip(origin, found, strict=True)):
            try:
                objects.append(self.row(load_object(one.raw, self.fills)))
                sound.append(at)
            except MalformedObject as wrong:
                described = len(errors) < room
                errors[index] = (
                    self._object_error(wrong, one, before + index) if described else None
                )
        return self._cast_rows(
            objects,
            [origin[at] for at in sound],
            [found[at] for at in sound],
            before,
            records,
            errors,
            room,
        )

    def fills(self, key: str) -> bool:
        """Whether a field is of use: of others nothing is looked at, as the quick parser does."""
        return self._spec.rescue is not None or self._keys.get(self._fold(key)) in self._wanted

    def row(self, found: dict[str, Any]) -> ObjectRow:
        """An object with the table's own names; null markers are None."""
        row: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, value in without_nulls(found, self._format).items():
            name = self._keys.get(self._fold(key))
            if name is None or name not in self._wanted:
                if self._spec.rescue is not None and value is not None:
                    extra[key] = value
                continue
            if name in row:
                raise MalformedObject(f"the field {name!r} stands there twice", None)
            row[name] = None if isinstance(value, str) and value in self._format.null_if else value
        if self._format.missing_field == "error":
            missing = [name for name in self._spec.schema.names if name not in row]
            missing = [name for name in missing if name in self._wanted]
            if missing:
                raise MalformedObject(
                    f"the field {missing[0]!r} is missing", None, Code.MISSING_FIELD
                )
        return ObjectRow(row, extra)

    def _cast_rows(
        self,
        objects: list[ObjectRow],
        origin: list[int],
        found: list[RawRecord],
        before: int,
        records: int,
        errors: dict[int, RowError | None],
        room: int,
    ) -> ParsedBatch:
        """Objects as rows, those with cells that do not fit among the errors."""
        columns: list[pa.Array | CastResult | None] = [
            column_of([row.values.get(field.name) for row in objects], field.type)
            for field in self._spec.schema
        ]
        extras = {at: row.extra for at, row in enumerate(objects) if row.extra}
        cast = self._caster.cast(columns, len(objects), extras)
        for cell_error in cast.cell_errors:
            index = origin[cell_error.row]
            one = found[cell_error.row]
            described = len(errors) < room
            errors[index] = self._cell_error(cell_error, one, before + index) if described else None
        rejected = tuple(sorted(errors))
        kept = tuple(error for at in rejected if (error := errors[at]) is not None)
        return ParsedBatch(cast.rows, before + 1, records, rejected, kept)

    def _object_error(self, wrong: MalformedObject, found: RawRecord, record: int) -> RowError:
        return RowError(
            file=self._file,
            line=found.line,
            record=record + 1,
            column=None,
            character=wrong.character,
            target_type=None,
            value=None,
            code=wrong.code,
            message=wrong.message,
            raw=show_bytes(found.raw),
            byte_offset=found.offset,
        )

    def _cell_error(self, error: CellError, found: RawRecord, record: int) -> RowError:
        def is_key(key: str) -> bool:
            return self._keys.get(self._fold(key)) == error.column

        return error.at(
            self._file,
            record + 1,
            line=found.line,
            character=_find_character(found.raw, is_key),
            raw=show_bytes(found.raw),
            byte_offset=found.offset,
        )

    def _refuse_endless(self, block: Block, before: Extent) -> ParsedBatch:
        message = f"the record is longer than {MAX_RECORD >> 20} MiB"
        wrong = MalformedObject(message, None, Code.RECORD_TOO_LONG)
        found = RawRecord(before.lines + 1, block.offset, block.data[:256])
        errors: dict[int, RowError | None] = {0: self._object_error(wrong, found, before.records)}
        return self._cast_rows([], [], [], before.records, 1, errors, 1)


def load_object(raw: bytes, fills: Callable[[str], bool] = lambda key: True) -> dict[str, Any]:
    """One JSON object; numbers with a point stay exact. Malformed says what is wrong and where.

    A key that stands there twice is wrong where it fills something.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode()
        raise MalformedObject("is not UTF-8", len(good) + 1, Code.INVALID_ENCODING) from error
    doubled: list[int] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            doubled.append(len(pairs))
        return made

    try:
        # NaN and its like are no JSON; a column of doubles takes them, text does not.
        found = json.loads(
            text, parse_float=Decimal, parse_constant=Decimal, object_pairs_hook=once
        )
        if doubled and isinstance(found, dict):
            pairs = json.loads(text, parse_float=Decimal, object_pairs_hook=_Pairs)
            _refuse_doubled(_Pairs(pair for pair in pairs if fills(pair[0])))
    except json.JSONDecodeError as error:
        raise MalformedObject(f"is no JSON: {error.msg}", error.pos + 1) from error
    except RecursionError as error:
        raise MalformedObject("is nested too deeply", None) from error
    except (ValueError, ArithmeticError) as error:  # digits or an exponent beyond all measure
        raise MalformedObject(
            "holds a number beyond all measure", None, Code.OUT_OF_RANGE
        ) from error
    if not isinstance(found, dict):
        raise MalformedObject("is no JSON object", 1)
    return found


def without_nulls(found: dict[str, Any], format: JsonFormat) -> dict[str, Any]:
    """STRIP_NULL_VALUES: the object without its null members, at every depth.

    Elements of an array stay, null or not: their places mean something.
    """
    stripped: dict[str, Any] = _strip_nulls(found) if format.strip_null_values else found
    return stripped


def _strip_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strip_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_strip_nulls(one) for one in value]
    return value


class _Pairs(list[tuple[str, Any]]):
    """An object as it is written, doubled keys and all."""


def _refuse_doubled(value: Any) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, one in value:
            if key in seen:
                raise MalformedObject(f"the key {key!r} stands there twice", None)
            seen.add(key)
            _refuse_doubled(one)
    elif isinstance(value, list):
        for one in value:
            _refuse_doubled(one)


def _find_character(raw: bytes, is_key: Callable[[str], bool]) -> int | None:
    """Where the field is named in its object, in characters from 1; None if that cannot be told."""
    text = raw.decode("utf-8", "replace")
    end = 0
    try:
        while text[at := _skip_mark(text, end)] == '"':
            key, end = _DECODER.raw_decode(text, at)
            if is_key(key):
                return at + 1
            _, end = _DECODER.raw_decode(text, _skip_mark(text, end))
    except (ValueError, IndexError, RecursionError):
        return None
    return None


def _skip_mark(text: str, at: int) -> int:
    """What follows a mark between two values."""
    found = _BETWEEN.match(text, at)
    assert found is not None, "it may be empty"
    return found.end()
