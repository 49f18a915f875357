"""Which module reads which format; nothing is imported before it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

import pyarrow as pa

from calque.load.formats.guard import GuardedReader, refusing
from calque.load.formats.reading import Reader, ReadSpec
from calque.load.formats.source import Source
from calque.load.formats.unify import unify
from calque.load.work import FormatOptions

_READERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "csv": ("calque.load.formats.csv_reader", "CsvReader"),
        "json": ("calque.load.formats.json_reader", "JsonReader"),
        "parquet": ("calque.load.formats.parquet_reader", "ParquetReader"),
        "orc": ("calque.load.formats.orc_reader", "OrcReader"),
        "avro": ("calque.load.formats.avro_reader", "AvroReader"),
        "xml": ("calque.load.formats.xml_reader", "XmlReader"),
    }
)


_SCHEMAS: Mapping[str, str] = MappingProxyType(
    {
        "csv": "calque.load.formats.csv_infer",
        "json": "calque.load.formats.json_infer",
        "parquet": "calque.load.formats.parquet_reader",
        "orc": "calque.load.formats.orc_reader",
        "avro": "calque.load.formats.avro_reader",
        "xml": "calque.load.formats.xml_reader",
    }
)


def infer_schema(source: Source, format: FormatOptions) -> pa.Schema:
    """The schema of one file by its own words or by a sample of it."""
    module = importlib.import_module(_SCHEMAS[format.kind])
    with refusing(source, format.kind):
        return _legible(module.infer_schema(source, format))


def raw_schema(source: Source, format: FormatOptions) -> pa.Schema:
    """The columns as a transformation sees them: text where the format knows nothing else."""
    module = importlib.import_module(_SCHEMAS[format.kind])
    with refusing(source, format.kind):
        return _legible(getattr(module, "raw_schema", module.infer_schema)(source, format))


def _legible(schema: pa.Schema) -> pa.Schema:
    """The schema; raises where a name in it, at any depth, is no text: Arrow looks at none."""
    unify([schema])
    return schema


def open_reader(source: Source, spec: ReadSpec) -> Reader:
    """The reader of a piece. A task imports the one format that it reads."""
    module, name = _READERS[spec.format.kind]
    made = getattr(importlib.import_module(module), name)
    return GuardedReader(cast(Reader, made(source, spec)), source, spec.format.kind)
