"""Avro object files: block by block, logical types as they are meant."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import IO, Any, cast

import fastavro
import pyarrow as pa
from fastavro.read import LOGICAL_READERS
from fastavro.schema import expand_schema

from calque.loader.model.file_formats import AvroFormat
from calque.loader.run.formats.cast.python_values import column_of
from calque.loader.run.formats.cast.row_caster import RowCaster
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.column_map import (
    map_columns,
    refuse_missing,
    require,
    with_extra,
)
from calque.loader.run.formats.columnar.batch_caster import row_errors
from calque.loader.run.formats.reader import Extent, ParsedBatch, ReadSpec
from calque.loader.run.formats.refusal import Code, FileRefused
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.formats.unify_schemas import settle_type, widest

_PLAIN: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL: dict[str, pa.DataType] = {
    "date": pa.date32(),
    "time-millis": pa.time64("us"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}
_MOST_DIGITS = 38
"""Wider decimals are kept as text: no table has a number for them."""


class AvroReader:
    """Reads one Avro file; the schema is in the file."""

    def __init__(self, source: Source, spec: ReadSpec) -> None:
        assert isinstance(spec.format, AvroFormat)
        self._source = source
        self._spec = spec
        self._missing = spec.format.missing_field
        self._room = spec.keep_errors
        self.extent = Extent()

    def read(self) -> Iterator[ParsedBatch]:
        if self._source.size == 0:
            return
        stream = _Remembering(self._source.open_stream())
        blocks = _open(stream, self._source.location)
        found = arrow_schema(_require_record(blocks.writer_schema, self._source.location))
        location, spec = self._source.location, self._spec
        mapped = map_columns(spec.schema, found.names, spec.match, spec.columns, location)
        if self._missing == "error" and not spec.columns:
            refuse_missing(mapped, location)
        require(mapped, location)
        names = [None if source is None else found.names[source] for source in mapped.sources]
        _, extra = with_extra(mapped, found.names, pa.null()) if spec.rescue else (None, ())
        caster = RowCaster(spec.schema, CastRules.of(spec.format), spec.rescue)
        for records in _read_records(blocks, stream, self._source.location):
            yield self._parse(records, found, names, extra, caster)

    def _parse(
        self,
        records: list[Any],
        found: pa.Schema,
        names: list[str | None],
        extra: Sequence[str],
        caster: RowCaster,
    ) -> ParsedBatch:
        columns = [
            None if name is None else column_of([r[name] for r in records], found.field(name).type)
            for name in names
        ]
        extras = {
            at: rest
            for at, record in enumerate(records)
            if (rest := {name: record[name] for name in extra if record[name] is not None})
        }
        cast = caster.cast(columns, len(records), extras)
        before = self.extent.records
        errors = row_errors(self._source.location, cast.cell_errors[: self._room], before)
        self._room -= len(errors)
        self.extent.records += len(records)
        rejected = tuple(cell_error.row for cell_error in cast.cell_errors)
        return ParsedBatch(cast.rows, before + 1, len(records), rejected, errors)


def infer_schema(source: Source, format: AvroFormat) -> pa.Schema:
    """The file's own schema."""
    blocks = _open(source.open_stream(), source.location)
    return arrow_schema(_require_record(blocks.writer_schema, source.location))


def arrow_schema(record: dict[str, Any]) -> pa.Schema:
    """An Avro record schema in Arrow's words."""
    return pa.schema(
        [pa.field(field["name"], _arrow_type(field["type"])) for field in record["fields"]]
    )


def _arrow_type(avro: Any) -> pa.DataType:
    if isinstance(avro, list):
        kinds = [_arrow_type(branch) for branch in avro if branch != "null"]
        return settle_type(reduce(widest, kinds)) if kinds else pa.null()
    if isinstance(avro, str):
        return _PLAIN.get(avro, pa.string())
    logical = avro.get("logicalType")
    if logical == "decimal":
        precision, scale = avro["precision"], avro.get("scale", 0)
        return pa.decimal128(precision, scale) if precision <= _MOST_DIGITS else pa.string()
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    kind = avro["type"]
    if kind == "record":
        return pa.struct(list(arrow_schema(avro)))
    if kind == "array":
        return pa.list_(_arrow_type(avro["items"]))
    if kind == "map":
        return pa.map_(pa.string(), _arrow_type(avro["values"]))
    if kind == "fixed":
        return pa.binary()
    return _arrow_type(kind) if not isinstance(kind, str) else _PLAIN.get(kind, pa.string())


def _require_record(schema: Any, location: str) -> dict[str, Any]:
    if isinstance(schema, dict) and schema.get("type") == "record":
        # A type that was named is told by its name from then on: everywhere its own definition.
        return cast(dict[str, Any], expand_schema(schema))
    raise FileRefused.at(location, Code.NOT_THIS_FORMAT, "the Avro file holds no records")


def _open(stream: Any, location: str) -> Any:
    try:
        return fastavro.block_reader(stream)
    except (ValueError, EOFError, KeyError, IndexError, TypeError) as error:
        raise FileRefused.at(
            location,
            Code.NOT_THIS_FORMAT,
            f"this is not an Avro file: {error}",
            hint="Name the format that the file has, or stage it again if it was cut off.",
        ) from error


class _Remembering:
    """A stream that keeps the last four bytes that were read as such.

    Behind a block of snappy stands its CRC, which fastavro reads and does not compare.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.checksum: bytes | None = None

    def read(self, size: int = -1) -> bytes:
        found = self._stream.read(size)
        if size == 4:
            self.checksum = found
        return found

    def tell(self) -> int:
        return self._stream.tell()


def _read_records(blocks: Any, stream: _Remembering, location: str) -> Iterator[list[Any]]:
    while True:
        stream.checksum = None
        try:
            block = next(blocks, None)
            if block is not None and block.codec == "snappy":
                _compare_checksum(block, stream.checksum)
            records = None if block is None else _decode(block)
        except (ValueError, EOFError, IndexError, TypeError, KeyError) as error:
            raise FileRefused.at(
                location, Code.TRUNCATED, f"the Avro file is damaged or cut off: {error}"
            ) from error
        if records is None:
            return
        yield records


def _compare_checksum(block: Any, checksum: bytes | None) -> None:
    found = zlib.crc32(block.bytes_.getbuffer())
    if checksum is not None and found != int.from_bytes(checksum, "big"):
        raise ValueError("a block is not what its checksum says")


def _decode(block: Any) -> list[Any]:
    try:
        return list(block)
    except (OverflowError, ValueError, ArithmeticError):
        return _decode_without_logical_types(block)


class UnrepresentableValue:
    """A date, time or decimal that Python has no value for; no column takes it."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def __str__(self) -> str:
        return str(self._raw)


def _decode_without_logical_types(block: Any) -> list[Any]:
    """The records of a block that has such values: one of them is not to cost all others."""
    fields = block.writer_schema["fields"]
    logical = {field["name"]: kind for field in fields if (kind := _logical_type(field["type"]))}
    plain = [
        {**field, "type": _without_logical(field["type"])} if field["name"] in logical else field
        for field in fields
    ]
    block.writer_schema = {**block.writer_schema, "fields": plain}
    block.bytes_.seek(0)
    records = list(block)
    for record in records:
        for name, kind in logical.items():
            record[name] = _logical_value(record[name], kind)
    return records


def _logical_type(avro: Any) -> dict[str, Any] | None:
    """The logical type of a field, which may be null besides."""
    branches = [one for one in (avro if isinstance(avro, list) else [avro]) if one != "null"]
    one = branches[0] if len(branches) == 1 else None
    return one if isinstance(one, dict) and "logicalType" in one else None


def _without_logical(avro: Any) -> Any:
    if isinstance(avro, list):
        return [_without_logical(one) for one in avro]
    if not isinstance(avro, dict):
        return avro
    return {key: value for key, value in avro.items() if key != "logicalType"}


def _logical_value(value: Any, kind: dict[str, Any]) -> Any:
    convert = LOGICAL_READERS.get(f"{kind['type']}-{kind['logicalType']}")
    if value is None or convert is None:
        return value
    try:
        return convert(value, kind, None)
    except (OverflowError, ValueError, ArithmeticError):
        return UnrepresentableValue(value)
