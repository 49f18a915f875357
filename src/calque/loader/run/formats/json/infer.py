"""The columns of JSON by a sample of its objects. Text stays text: JSON has types of its own."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import reduce
from itertools import islice
from typing import Any

import pyarrow as pa

from calque.loader.model.file_formats import JsonFormat
from calque.loader.run.formats.byte_buffer import ByteBuffer
from calque.loader.run.formats.cast.infer_types import infer_moment
from calque.loader.run.formats.cast.numerals import numeral_of
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.delimited.open_buffer import open_buffer
from calque.loader.run.formats.json.array import ArrayParser
from calque.loader.run.formats.json.exact import MalformedObject, load_object, without_nulls
from calque.loader.run.formats.json.reader import refuse_array
from calque.loader.run.formats.reader import Extent, ReadSpec
from calque.loader.run.formats.refusal import NoSoundRecord
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.formats.unify_schemas import merge_schemas, widest
from calque.values import MIB

_SAMPLE_BYTES = 1 * MIB
_SAMPLE_ROWS = 10_000
_DEEPEST = 32
"""Deeper values are kept as text, lest one file make a type that no reader can hold."""


def infer_schema(source: Source, format: JsonFormat) -> pa.Schema:
    """Names and types by the first megabyte of a file; a column of several types is text."""
    buffer = open_buffer(source, format.compression)
    buffer.fill(_SAMPLE_BYTES)
    buffer.drop_mark()
    if not format.strip_outer_array:
        refuse_array(source, buffer)
    objects = list(islice(_objects(source, buffer, format), _SAMPLE_ROWS))
    schema = merge_schemas(
        [pa.schema([(key, type_of(value)) for key, value in row.items()]) for row in objects]
    )
    rules = CastRules.of(format)
    if rules.date_format is rules.timestamp_format is rules.time_format is None:
        return schema
    return pa.schema([_with_moment_type(field, objects, rules, format) for field in schema])


def _with_moment_type(
    field: pa.Field, objects: list[dict[str, Any]], rules: CastRules, format: JsonFormat
) -> pa.Field:
    """A column of text that is dates or times by the stated format, as such."""
    if not pa.types.is_string(field.type):
        return field
    found = [row[field.name] for row in objects if row.get(field.name) is not None]
    texts = [value for value in found if value not in format.null_if]
    if not texts or not all(isinstance(value, str) for value in texts):
        return field
    return field.with_type(infer_moment(pa.array(texts, pa.string()), rules) or field.type)


def type_of(value: Any, depth: int = 0) -> pa.DataType:
    """The type of one JSON value; text for what is nested too deeply, and for ``{}``."""
    if depth > _DEEPEST:
        return pa.string()
    if value is None:
        return pa.null()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int) or (isinstance(value, Decimal) and value.is_finite()):
        return numeral_of(value)
    if isinstance(value, float | Decimal):
        return pa.float64()
    if isinstance(value, list):
        return pa.list_(reduce(widest, (type_of(part, depth + 1) for part in value), pa.null()))
    if isinstance(value, dict) and value:
        return pa.struct([(key, type_of(inner, depth + 1)) for key, inner in value.items()])
    return pa.string()


def _objects(source: Source, buffer: ByteBuffer, format: JsonFormat) -> Iterator[dict[str, Any]]:
    """Those that are sound; raises where there are others and no sound one."""
    first: NoSoundRecord | None = None
    sound = False
    for line, raw in _texts(source, buffer, format):
        try:
            found = without_nulls(load_object(raw), format)
        except MalformedObject as wrong:
            if first is None and raw.strip():
                first = NoSoundRecord.at(source.location, wrong.code, wrong.message, line=line)
            continue
        sound = True
        yield found
    if first is not None and not sound:
        raise first


def _texts(source: Source, buffer: ByteBuffer, format: JsonFormat) -> Iterator[tuple[int, bytes]]:
    """The text of each object, with the line that it begins in."""
    if format.strip_outer_array:
        spec = ReadSpec(format=format, schema=pa.schema([]))
        for found in ArrayParser(spec, source.location).objects(buffer, Extent()):
            yield found.line, found.raw
        return
    lines = buffer.data.split(b"\n")
    yield from enumerate(lines if buffer.ended else lines[:-1], 1)
