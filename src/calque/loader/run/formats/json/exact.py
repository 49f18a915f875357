"""The exact parser of NDJSON: line by line, with the place of what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from calque.loader.model.file_formats import JsonFormat
from calque.loader.model.outcome import RowError
from calque.loader.run.formats.blocks import MAX_RECORD, Block
from calque.loader.run.formats.cast.python_values import column_of
from calque.loader.run.formats.cast.refused_cells import Cells
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.cast.table_rows import Shaper
from calque.loader.run.formats.reader import Extent, Parsed, ReadSpec
from calque.loader.run.formats.reject import Code, Misfit, cut, shown

_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"\s*[{:,]?\s*")
Place = tuple[int, int, bytes]
"""Where a record stands: its line, its offset in the stream, its bytes."""


class Malformed(Exception):
    """A text that is no JSON object; ``character`` counts from 1."""

    def __init__(self, message: str, character: int | None, code: Code = Code.MALFORMED) -> None:
        super().__init__(message)
        self.message = message
        self.character = character
        self.code = code


@dataclass(frozen=True, slots=True)
class Row:
    """An object: the values of the table's columns by their names, and what has no column."""

    values: dict[str, Any]
    extra: dict[str, Any]


class LineParser:
    """Objects of a file become rows of the table, one by one."""

    def __init__(self, spec: ReadSpec, file: str) -> None:
        assert isinstance(spec.format, JsonFormat)
        self._spec = spec
        self._format = spec.format
        self._file = file
        self._shaper = Shaper(spec.schema, CastRules.of(spec.format), spec.rescue)
        self._wanted = set(spec.columns) or set(spec.schema.names)
        self._fold: Callable[[str], str] = str.casefold if spec.match == "name_insensitive" else str
        self._keys = {self._fold(name): name for name in spec.schema.names}

    def names_of(self, data: bytes) -> dict[str, str]:
        """How the first object of a file spells the table's columns."""
        for line in data.split(b"\n", 64)[:64]:
            try:
                found = load_object(line)
            except Malformed:
                continue
            return {self._keys[self._fold(k)]: k for k in found if self._fold(k) in self._keys}
        return {}

    def parse(self, block: Block, before: Extent, room: int) -> Parsed:
        """Rows of a block; at most ``room`` errors are described."""
        if block.broken is not None:
            return self._endless(block, before)
        places: list[Place] = []
        offset = block.offset
        for number, line in enumerate(block.data[: block.end].split(b"\n"), before.lines + 1):
            if line.strip():
                places.append((number, offset, line))
            offset += len(line) + 1
        return self.read(range(len(places)), places, before.records, len(places), room)

    def read(
        self, origin: Sequence[int], places: Sequence[Place], before: int, records: int, room: int
    ) -> Parsed:
        """Rows of some lines: ``origin`` are their positions among the ``records`` of a block."""
        objects: list[Row] = []
        sound: list[int] = []
        errors: dict[int, RowError | None] = {}
        for at, (index, place) in enumerate(zip(origin, places, strict=True)):
            try:
                objects.append(self.row(load_object(place[2], self.fills)))
                sound.append(at)
            except Malformed as wrong:
                described = len(errors) < room
                errors[index] = self.wrong(wrong, place, before + index) if described else None
        return self.shaped(
            objects,
            [origin[at] for at in sound],
            [places[at] for at in sound],
            before,
            records,
            errors,
            room,
        )

    def fills(self, key: str) -> bool:
        """Whether a field is of use: of others nothing is looked at, as the quick parser does."""
        return self._spec.rescue is not None or self._keys.get(self._fold(key)) in self._wanted

    def row(self, found: dict[str, Any]) -> Row:
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
                raise Malformed(f"the field {name!r} stands there twice", None)
            row[name] = None if isinstance(value, str) and value in self._format.null_if else value
        if self._format.missing_field == "error":
            missing = [name for name in self._spec.schema.names if name not in row]
            missing = [name for name in missing if name in self._wanted]
            if missing:
                raise Malformed(f"the field {missing[0]!r} is missing", None, Code.MISSING_FIELD)
        return Row(row, extra)

    def shaped(
        self,
        objects: list[Row],
        origin: list[int],
        places: list[Place],
        before: int,
        records: int,
        errors: dict[int, RowError | None],
        room: int,
    ) -> Parsed:
        """Objects as rows, their misfits among the errors."""
        columns: list[pa.Array | Cells | None] = [
            column_of([row.values.get(field.name) for row in objects], field.type)
            for field in self._spec.schema
        ]
        extras = {at: row.extra for at, row in enumerate(objects) if row.extra}
        shaped = self._shaper.shape(columns, len(objects), extras)
        for misfit in shaped.misfits:
            index = origin[misfit.row]
            place = places[misfit.row]
            described = len(errors) < room
            errors[index] = self._misfit(misfit, place, before + index) if described else None
        rejected = tuple(sorted(errors))
        kept = tuple(error for at in rejected if (error := errors[at]) is not None)
        return Parsed(shaped.rows, before + 1, records, rejected, kept)

    def wrong(self, wrong: Malformed, place: Place, record: int) -> RowError:
        line, offset, raw = place
        return RowError(
            file=self._file,
            line=line,
            record=record + 1,
            column=None,
            character=wrong.character,
            target_type=None,
            value=None,
            code=wrong.code,
            message=wrong.message,
            raw=shown(raw),
            byte_offset=offset,
        )

    def _misfit(self, misfit: Misfit, place: Place, record: int) -> RowError:
        line, offset, raw = place
        return RowError(
            file=self._file,
            line=line,
            record=record + 1,
            column=misfit.column,
            character=_character(raw, lambda key: self._keys.get(self._fold(key)) == misfit.column),
            target_type=misfit.target_type,
            value=cut(misfit.value),
            code=misfit.code,
            message=misfit.message,
            raw=shown(raw),
            byte_offset=offset,
        )

    def _endless(self, block: Block, before: Extent) -> Parsed:
        message = f"the record is longer than {MAX_RECORD >> 20} MiB"
        wrong = Malformed(message, None, Code.RECORD_TOO_LONG)
        place = (before.lines + 1, block.offset, block.data[:256])
        errors: dict[int, RowError | None] = {0: self.wrong(wrong, place, before.records)}
        return self.shaped([], [], [], before.records, 1, errors, 1)


def load_object(raw: bytes, fills: Callable[[str], bool] = lambda key: True) -> dict[str, Any]:
    """One JSON object; numbers with a point stay exact. Malformed says what is wrong and where.

    A key that stands there twice is wrong where it fills something.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode()
        raise Malformed("is not UTF-8", len(good) + 1, Code.INVALID_ENCODING) from error
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
        raise Malformed(f"is no JSON: {error.msg}", error.pos + 1) from error
    except RecursionError as error:
        raise Malformed("is nested too deeply", None) from error
    except (ValueError, ArithmeticError) as error:  # digits or an exponent beyond all measure
        raise Malformed("holds a number beyond all measure", None, Code.OUT_OF_RANGE) from error
    if not isinstance(found, dict):
        raise Malformed("is no JSON object", 1)
    return found


def without_nulls(found: dict[str, Any], format: JsonFormat) -> dict[str, Any]:
    """STRIP_NULL_VALUES: the object without its null members, at every depth.

    Elements of an array stay, null or not: their places mean something.
    """
    stripped: dict[str, Any] = _stripped(found) if format.strip_null_values else found
    return stripped


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_stripped(one) for one in value]
    return value


class _Pairs(list[tuple[str, Any]]):
    """An object as it is written, doubled keys and all."""


def _refuse_doubled(value: Any) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, one in value:
            if key in seen:
                raise Malformed(f"the key {key!r} stands there twice", None)
            seen.add(key)
            _refuse_doubled(one)
    elif isinstance(value, list):
        for one in value:
            _refuse_doubled(one)


def _character(raw: bytes, is_key: Callable[[str], bool]) -> int | None:
    """Where the field is named in its object, in characters from 1; None if that cannot be told."""
    text = raw.decode("utf-8", "replace")
    end = 0
    try:
        while text[at := _past(text, end)] == '"':
            key, end = _DECODER.raw_decode(text, at)
            if is_key(key):
                return at + 1
            _, end = _DECODER.raw_decode(text, _past(text, end))
    except (ValueError, IndexError, RecursionError):
        return None
    return None


def _past(text: str, at: int) -> int:
    """What follows a mark between two values."""
    found = _BETWEEN.match(text, at)
    assert found is not None, "it may be empty"
    return found.end()
