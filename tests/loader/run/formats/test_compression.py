"""Compressed files: by extension, proved by magic bytes, refused where in doubt."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pyarrow as pa
import pytest

from calque.loader.model.file_formats import CsvFormat
from calque.loader.run.formats import Code, FileRefused
from calque.loader.run.formats.compression import PIECE, open_stream
from calque.values import MIB
from tests.loader.run.formats.conftest import Read

PLAIN = b"".join(b"%d,some text %d\n" % (n, n * 7919 % 1000) for n in range(30_000))
AB = [("a", pa.int64()), ("b", pa.string())]


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


PACKED = {
    "f.csv.gz": gzip.compress(PLAIN),
    "f.csv.zst": zstd(PLAIN),
    "f.csv.bz2": bz2.compress(PLAIN),
    "f.csv.xz": lzma.compress(PLAIN),
}


@pytest.mark.parametrize("name", PACKED)
def test_by_extension(read: Read, name: str) -> None:
    """Each compression is read by its extension."""
    result = read(PACKED[name], CsvFormat(), AB, name=name)
    assert len(result.rows) == 30_000
    assert result.rows[-1]["a"] == 29_999


@pytest.mark.parametrize("name", PACKED)
def test_a_bomb_is_opened_bit_by_bit(name: str) -> None:
    """However much a few bytes hold, it never stands in memory all at once."""
    plain = b"id\n" + b"0" * 20 * MIB
    make = {"gz": gzip.compress, "zst": zstd, "bz2": bz2.compress, "xz": lzma.compress}
    packed = make[name.rpartition(".")[2]](plain)
    sizes = [len(part) for part in open_stream(name, iter([packed]), "auto")]
    assert sum(sizes) == len(plain)
    assert max(sizes) <= PIECE


def test_by_magic_and_members(read: Read) -> None:
    """A name that says nothing is believed by its bytes; members follow one another."""
    data = gzip.compress(PLAIN[:50_000]) + gzip.compress(PLAIN[50_000:])
    assert len(read(data, CsvFormat(), AB, name="landing").rows) == 30_000


@pytest.mark.parametrize("name", PACKED)
def test_truncated(read: Read, name: str) -> None:
    """A file that was cut off is refused, with the byte where it ends."""
    data = PACKED[name][: len(PACKED[name]) // 2]
    with pytest.raises(FileRefused) as caught:
        read(data, CsvFormat(), AB, name=name)
    assert caught.value.row_error.code in (Code.TRUNCATED, Code.MALFORMED)
    assert caught.value.row_error.byte_offset is not None


def test_damaged(read: Read) -> None:
    """A flipped byte is damage, not data."""
    data = bytearray(PACKED["f.csv.gz"])
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(FileRefused):
        read(bytes(data), CsvFormat(), AB, name="f.csv.gz")


@pytest.mark.parametrize(
    ("name", "data", "compression"),
    [
        ("f.csv.gz", b"1,x\n", "auto"),
        ("f.csv.gz", PACKED["f.csv.xz"], "auto"),
        ("f.csv", PACKED["f.csv.gz"], "none"),
        ("f.csv", b"1,x\n", "gzip"),
        ("f.csv.br", b"1,x\n", "auto"),
        ("f.csv.lz4", b"\x04\x22\x4d\x18rest", "auto"),
        ("f.zip", b"PK\x03\x04rest", "auto"),
        ("f.csv", b"PK\x03\x04rest", "auto"),
    ],
)
def test_refused(read: Read, name: str, data: bytes, compression: str) -> None:
    """What name, option and bytes do not agree on is never read as garbage."""
    with pytest.raises(FileRefused) as caught:
        read(data, CsvFormat(compression=compression), AB, name=name)  # type: ignore[arg-type]
    assert caught.value.row_error.code == Code.WRONG_COMPRESSION


def test_empty_is_empty(read: Read) -> None:
    """A file of no bytes has no rows, whatever its extension."""
    assert read(b"", CsvFormat(), AB, name="f.csv.gz").rows == []
