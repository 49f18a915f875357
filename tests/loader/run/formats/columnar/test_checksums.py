"""Checksums that a file brings are compared: a flipped bit is a refusal, never a value."""

from __future__ import annotations

import io

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calque.loader.model.file_formats import AvroFormat, FormatOptions, ParquetFormat
from calque.loader.run.formats.reader import ReadSpec
from calque.loader.run.formats.refusal import FileRefused
from calque.loader.run.formats.registry import open_reader
from tests.loader.run.formats.conftest import Stage

WORDS = [f"word-{number:06}" for number in range(500)]
SCHEMA = pa.schema([("s", pa.string())])


def avro(codec: str) -> bytes:
    body = io.BytesIO()
    fields = [{"name": "s", "type": "string"}]
    records = [{"s": word} for word in WORDS]
    fastavro.writer(body, {"type": "record", "name": "r", "fields": fields}, records, codec=codec)
    return body.getvalue()


def parquet() -> bytes:
    body = io.BytesIO()
    table = pa.table({"s": WORDS}, SCHEMA)
    pq.write_table(table, body, write_page_checksum=True, use_dictionary=False, compression="none")
    return body.getvalue()


def read(stage: Stage, name: str, body: bytes, format: FormatOptions) -> list[str]:
    file = stage.staged(name, body)
    reader = open_reader(stage.source(file), ReadSpec(format=format, schema=SCHEMA, match="name"))
    return [one for batch in reader.read() for one in batch.rows.column(0).to_pylist()]


@pytest.mark.parametrize(
    ("name", "body", "format"),
    [
        ("a.avro", avro("snappy"), AvroFormat()),
        ("a.avro", avro("bzip2"), AvroFormat()),
        ("a.avro", avro("xz"), AvroFormat()),
        ("a.parquet", parquet(), ParquetFormat()),
    ],
    ids=["snappy", "bzip2", "xz", "parquet"],
)
def test_a_flipped_bit(stage: Stage, name: str, body: bytes, format: FormatOptions) -> None:
    """In the middle of the data, where the file stays sound in all but its values."""
    assert read(stage, name, body, format) == WORDS
    at = body.find(b"000250")
    at = len(body) // 2 if at < 0 else at
    damaged = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
    with pytest.raises(FileRefused):
        read(stage, name, damaged, format)
