"""Avro: named and logical types as they are meant, every codec, damaged blocks."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest

from calque.loader.model.file_formats import AvroFormat
from calque.loader.run.formats import FileRefused
from tests.loader.run.formats.conftest import Read


def test_named_types(read: Read) -> None:
    """A type that is told by its name is what it was defined as: bytes stay the bytes they are."""
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "type": {"type": "fixed", "name": "hash", "size": 2}},
            {"name": "b", "type": ["null", "hash"]},
        ],
    }
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"a": b"\xff\0", "b": b"\xff\0"}])
    fields = [("a", pa.binary()), ("b", pa.binary())]
    result = read(out.getvalue(), AvroFormat(), fields, match="name")
    assert result.rows == [{"a": b"\xff\0", "b": b"\xff\0"}]


def test_logical_types(read: Read) -> None:
    """Decimals, dates, instants and nested values come as what they mean."""
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {
                "name": "d",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "l", "type": {"type": "array", "items": "int"}},
        ],
    }
    out = io.BytesIO()
    moment = datetime(2024, 7, 1, 12, tzinfo=UTC)
    fastavro.writer(out, schema, [{"d": Decimal("1.50"), "t": moment, "l": [1, 2]}])
    fields = [
        ("d", pa.decimal128(9, 2)),
        ("t", pa.timestamp("us", "UTC")),
        ("l", pa.list_(pa.int64())),
    ]
    result = read(out.getvalue(), AvroFormat(), fields, match="name")
    assert result.rows == [{"d": Decimal("1.50"), "t": moment, "l": [1, 2]}]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz", "lz4"])
def test_of_every_codec(read: Read, codec: str) -> None:
    """Blocks of an Avro file may be compressed in any way that Avro names."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": "string"}]}
    wanted = [{"v": f"text {number % 7}"} for number in range(5000)]
    out = io.BytesIO()
    fastavro.writer(out, schema, wanted, codec=codec)
    result = read(out.getvalue(), AvroFormat(), [("v", pa.string())], name="f.avro")
    assert result.rows == wanted
    assert result.errors == []


@pytest.mark.parametrize("codec", ["snappy", "zstandard", "bzip2", "xz", "lz4"])
def test_with_a_damaged_block(read: Read, codec: str) -> None:
    """A block that cannot be decompressed refuses the file, whatever its codec raises."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": "string"}]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"v": "text"} for _ in range(500)], codec=codec)
    data = bytearray(out.getvalue())
    at = data.rindex(data[-16:], 0, -16)  # the mark before the block
    data[at + 20 : at + 28] = b"damaged!"
    with pytest.raises(FileRefused):
        read(bytes(data), AvroFormat(), [("v", pa.string())], name="f.avro")
