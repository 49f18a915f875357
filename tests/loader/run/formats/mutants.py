"""Real files of every format, and the same files damaged in every way."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from calque.loader.model.file_formats import (
    AvroFormat,
    CsvFormat,
    FormatOptions,
    JsonFormat,
    OrcFormat,
    ParquetFormat,
    XmlFormat,
)

SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("f", pa.float64()),
        ("d", pa.decimal128(12, 2)),
        ("t", pa.timestamp("us", "UTC")),
        ("b", pa.date32()),
        ("s", pa.string()),
        ("l", pa.list_(pa.int64())),
    ]
)
ROWS: list[dict[str, Any]] = [
    {
        "n": number,
        "f": number / 7,
        "d": Decimal(number * 13).scaleb(-2),
        "t": datetime(2024, 1, 1 + number % 28, tzinfo=UTC),
        "b": date(2024, 2, 1 + number % 28),
        "s": None if number % 5 == 0 else f'text "{number}", é\n',
        "l": list(range(number % 4)),
    }
    for number in range(40)
]
_HEADED = CsvFormat(parse_header=True)


def _table() -> pa.Table:
    return pa.Table.from_pylist(ROWS, schema=SCHEMA)


def _csv() -> bytes:
    lines = ["n,f,d,t,b,s,l"]
    for row in ROWS:
        text = (row["s"] or "").replace('"', '""')
        moment = row["t"].isoformat()
        lines.append(f'{row["n"]},{row["f"]},{row["d"]},{moment},{row["b"]},"{text}","{row["l"]}"')
    return "\n".join(lines).encode()


def _json() -> bytes:
    spelled = [
        {**row, "d": str(row["d"]), "t": row["t"].isoformat(), "b": str(row["b"])} for row in ROWS
    ]
    return "\n".join(json.dumps(row) for row in spelled).encode()


def _xml() -> bytes:
    rows = "".join(
        f"<row n='{row['n']}'><f>{row['f']}</f><d>{row['d']}</d><s>é &amp; {row['n']}</s></row>"
        for row in ROWS
    )
    return f'<?xml version="1.0" encoding="utf-8"?><rows>{rows}</rows>'.encode()


def _parquet(**options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(_table(), out, **options)
    return out.getvalue()


def _orc(compression: str) -> bytes:
    out = io.BytesIO()
    orc.write_table(_table(), out, compression=compression)
    return out.getvalue()


def _avro(codec: str) -> bytes:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "n", "type": "int"},
            {"name": "f", "type": ["null", "double", "long"]},
            {
                "name": "d",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
            },
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "b", "type": {"type": "int", "logicalType": "date"}},
            {"name": "s", "type": ["null", "string"]},
            {"name": "l", "type": {"type": "array", "items": "long"}},
        ],
    }
    out = io.BytesIO()
    fastavro.writer(out, schema, ROWS, codec=codec)
    return out.getvalue()


SEEDS: dict[str, tuple[str, FormatOptions, Callable[[], bytes]]] = {
    "csv": ("f.csv", _HEADED, _csv),
    "csv-escape": ("f.csv", CsvFormat(escape="\\", null_if=("\\N",), skip_header=1), _csv),
    "csv-gzip": ("f.csv.gz", _HEADED, lambda: gzip.compress(_csv())),
    "csv-zstd": ("f.csv.zst", _HEADED, lambda: pa.compress(_csv(), "zstd", asbytes=True)),
    "csv-bz2": ("f.csv.bz2", _HEADED, lambda: bz2.compress(_csv())),
    "csv-xz": ("f.csv.xz", _HEADED, lambda: lzma.compress(_csv())),
    "json": ("f.json", JsonFormat(), _json),
    "json-array": (
        "f.json",
        JsonFormat(strip_outer_array=True),
        lambda: b"[" + _json().replace(b"\n", b",\n") + b"]",
    ),
    "xml": ("f.xml", XmlFormat(), _xml),
    "parquet": ("f.parquet", ParquetFormat(), _parquet),
    "parquet-plain": (
        "f.parquet",
        ParquetFormat(),
        lambda: _parquet(compression="none", use_dictionary=False, write_statistics=False),
    ),
    "orc": ("f.orc", OrcFormat(), lambda: _orc("zlib")),
    "orc-plain": ("f.orc", OrcFormat(), lambda: _orc("uncompressed")),
    "avro": ("f.avro", AvroFormat(), lambda: _avro("null")),
    "avro-deflate": ("f.avro", AvroFormat(), lambda: _avro("deflate")),
    "avro-snappy": ("f.avro", AvroFormat(), lambda: _avro("snappy")),
    "avro-zstd": ("f.avro", AvroFormat(), lambda: _avro("zstandard")),
}
_TELLING = (b"\x00", b"\xff", b"\x7f", b"\x80", b"0", b"9", b'"', b"\\", b"\n", b",", b"{", b"[")
_WORDS = (b"NaN", b"1e99999999999999999999", b"null", b"\xed\xa0\x80", b"[[[[", b"-", b"0x1")


def mutant(data: bytes, chance: random.Random) -> bytes:
    """A file with one to four things wrong: bytes, pieces cut, doubled, moved, words put in."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(made) + 1)
        size = chance.choice((1, 1, 2, 4, 8, 64))
        way = chance.randrange(7)
        if way == 0 and at < len(made):
            made[at] ^= 1 << chance.randrange(8)
        elif way == 1:
            made[at : at + 1] = chance.choice(_TELLING)
        elif way == 2:
            made[at : at + size] = b""
        elif way == 3:
            made[at:at] = made[at : at + size]
        elif way == 4:
            made[at : at + size] = chance.randbytes(size)
        elif way == 5:
            made[at:at] = chance.choice(_WORDS)
        elif chance.random() < 0.3:
            del made[at:]
        made = made or bytearray(b"x")
    return bytes(made)


def footer_mutant(data: bytes, chance: random.Random) -> bytes:
    """A Parquet file whose footer alone is damaged, in one to three places."""
    size = int.from_bytes(data[-8:-4], "little")
    begin = len(data) - 8 - size
    footer = bytearray(data[begin:-8])
    for _ in range(chance.randint(1, 3)):
        at, way = chance.randrange(len(footer)), chance.randrange(3)
        if way == 0:
            footer[at] ^= 1 << chance.randrange(8)
        elif way == 1:
            footer[at] = chance.choice((*range(9), 0x15, 0x7F, 0x80, 0xFF))
        else:
            footer[at : at + 4] = chance.randbytes(4)
    return data[:begin] + bytes(footer) + len(footer).to_bytes(4, "little") + b"PAR1"


def _varint(number: int) -> bytes:
    """A number as protocol buffers spell it."""
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def nested_orc(levels: int) -> bytes:
    """A file with a column of lists in lists; its footer is written by hand, at any depth."""
    out = io.BytesIO()
    orc.write_table(pa.table({"only": [1, 2, 3]}), out, compression="uncompressed")
    data = out.getvalue()
    script = data[-1 - data[-1] : -1]  # the postscript; first in it the length of the footer
    assert script[0] == 8
    assert script[1] < 128, "the length is one byte"
    begin = len(data) - 1 - len(script) - script[1]
    kinds = [data[begin : begin + script[1]]]
    kinds[0] = kinds[0].replace(
        bytes.fromhex("22 08 08 04 20 00 28 00 30 00"),  # type 1 is long
        bytes.fromhex("22 08 08 0a 12 01 02 20 80 00"),  # type 1 is a list of type 2
    )
    for number in range(2, levels):
        inner = _varint(number + 1)
        kind = b"\x08\x0a\x12" + _varint(len(inner)) + inner
        kinds.append(b"\x22" + _varint(len(kind)) + kind)
    kinds.append(b"\x22\x02\x08\x04")  # and the last is long
    footer = b"".join(kinds)
    script = b"\x08" + _varint(len(footer)) + script[2:]
    return data[:begin] + footer + script + bytes([len(script)])
