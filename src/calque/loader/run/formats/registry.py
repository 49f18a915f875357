"""Which module reads which format; nothing is imported before it is used.

The options of a format are in ``loader/model/file_formats.py``, their names in SQL in
``loader/request/options.py``, the endings of its files in ``loader/plan/make_plan.py``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import cast

import pyarrow as pa

from calque.errors import MissingExtra
from calque.loader.model.file_formats import FormatOptions
from calque.loader.run.formats.guard import GuardedReader, refuse_on_error
from calque.loader.run.formats.reader import Reader, ReadSpec
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.formats.unify_schemas import unify_schemas

_READERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "csv": ("calque.loader.run.formats.csv.reader", "CsvReader"),
        "json": ("calque.loader.run.formats.json.reader", "JsonReader"),
        "parquet": ("calque.loader.run.formats.columnar.parquet", "ParquetReader"),
        "orc": ("calque.loader.run.formats.columnar.orc", "OrcReader"),
        "avro": ("calque.loader.run.formats.columnar.avro", "AvroReader"),
        "xml": ("calque.loader.run.formats.xml", "XmlReader"),
    }
)


_SCHEMAS: Mapping[str, str] = MappingProxyType(
    {
        "csv": "calque.loader.run.formats.csv.infer",
        "json": "calque.loader.run.formats.json.infer",
        "parquet": "calque.loader.run.formats.columnar.parquet",
        "orc": "calque.loader.run.formats.columnar.orc",
        "avro": "calque.loader.run.formats.columnar.avro",
        "xml": "calque.loader.run.formats.xml",
    }
)


CRASH_PRONE = frozenset({"orc"})
"""Formats whose library a damaged file can crash: never read in the caller's own process."""


def infer_schema(source: Source, format: FormatOptions) -> pa.Schema:
    """The schema of one file by its own words or by a sample of it."""
    module = _import_module(_SCHEMAS[format.kind], format.kind)
    with refuse_on_error(source, format.kind):
        return _require_legible(module.infer_schema(source, format))


def raw_schema(source: Source, format: FormatOptions) -> pa.Schema:
    """The columns as a transformation sees them: text where the format knows nothing else."""
    module = _import_module(_SCHEMAS[format.kind], format.kind)
    with refuse_on_error(source, format.kind):
        return _require_legible(getattr(module, "raw_schema", module.infer_schema)(source, format))


def _require_legible(schema: pa.Schema) -> pa.Schema:
    """The schema; raises where a name in it, at any depth, is no text: Arrow looks at none."""
    unify_schemas([schema])
    return schema


def open_reader(source: Source, spec: ReadSpec) -> Reader:
    """The reader of a piece. A task imports the one format that it reads."""
    module, name = _READERS[spec.format.kind]
    made = getattr(_import_module(module, spec.format.kind), name)
    return GuardedReader(cast(Reader, made(source, spec)), source, spec.format.kind)


def _import_module(name: str, kind: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra.of(
            "delta", f"reading {kind.upper()} ({error.name})", or_else="iceberg"
        ) from error
