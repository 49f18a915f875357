"""Which module reads which format; nothing is imported before it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from calque.load.formats.reading import Reader, ReadSpec
from calque.load.formats.source import Source

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


def open_reader(source: Source, spec: ReadSpec) -> Reader:
    """The reader of a piece. A task imports the one format that it reads."""
    module, name = _READERS[spec.format.kind]
    made = getattr(importlib.import_module(module), name)
    return cast(Reader, made(source, spec))
