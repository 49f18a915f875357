"""Content: blocks of a segment, whole and in ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import IntegrityError, InvalidInput
from calque.store.chunks import ChunkReader
from calque.store.uplink.encryption.blocks import (
    BlockCipher,
    EncryptionParameters,
    SegmentEncryption,
    span_of,
)
from calque.store.uplink.encryption.cipher import CipherSuite
from calque.store.uplink.encryption.keys import SecretKey

KEY = SecretKey(bytes(range(32)))
SMALL = EncryptionParameters(CipherSuite.AES_256_GCM, 16 + 10)
CIPHER = BlockCipher(KEY, SMALL)


def encrypted(data: bytes, limit: int = 1 << 30) -> tuple[list[bytes], int]:
    segment = SegmentEncryption(CIPHER, ChunkReader([data[:7], data[7:]]), limit, SMALL.plain_block)
    return list(segment), segment.plain_size


@given(st.binary(max_size=95), st.integers(1, 100))
def test_sizes_are_as_foretold(data: bytes, limit: int) -> None:
    """A segment takes at most its limit, and its encrypted size follows from its plain one."""
    blocks, size = encrypted(data, limit)
    assert size == min(len(data), limit)
    assert sum(map(len, blocks)) == SMALL.encrypted_size(size)
    assert len(blocks) == SMALL.block_count(size)


@given(st.binary(min_size=1, max_size=95), st.data())
def test_any_range_decrypts(data: bytes, draw: st.DataObject) -> None:
    """The blocks that a span names hold exactly the range."""
    blocks, _ = encrypted(data)
    offset = draw.draw(st.integers(0, len(data) - 1))
    length = draw.draw(st.integers(1, len(data) - offset))
    span = span_of(SMALL, offset, length)
    plain = b"".join(
        CIPHER.decrypt(number, blocks[number], last=number == len(blocks) - 1)
        for number in range(span.first, span.first + span.count)
    )
    assert plain[span.skip : span.skip + span.length] == data[offset : offset + length]


def test_blocks_are_bound_to_place_and_end() -> None:
    """Exchanged blocks, a flipped bit and a segment cut at a block border do not decrypt."""
    blocks, _ = encrypted(bytes(25))
    assert len(blocks) == 3
    with pytest.raises(IntegrityError, match="block 0"):
        CIPHER.decrypt(0, blocks[1], last=False)
    with pytest.raises(IntegrityError):
        CIPHER.decrypt(1, blocks[1], last=True)
    flipped = bytes([blocks[0][0] ^ 1]) + blocks[0][1:]
    with pytest.raises(IntegrityError):
        CIPHER.decrypt(0, flipped, last=False)


def test_equal_bytes_differ_under_two_keys() -> None:
    """Nonces start at zero in every segment, and never repeat under one key."""
    other = BlockCipher(SecretKey(bytes(32)), SMALL)
    assert CIPHER.encrypt(0, b"x", last=True) != other.encrypt(0, b"x", last=True)
    assert CIPHER.encrypt(0, b"x", last=False) != CIPHER.encrypt(1, b"x", last=False)


def test_a_block_needs_room_for_its_tag() -> None:
    """A block size without room for plain bytes is refused."""
    with pytest.raises(InvalidInput):
        EncryptionParameters(CipherSuite.AES_256_GCM, 16)


@given(st.lists(st.binary(max_size=9), max_size=9), st.lists(st.integers(1, 20), max_size=9))
def test_a_reader_gives_every_byte_once(chunks: list[bytes], sizes: list[int]) -> None:
    """However a stream is cut and asked for, its bytes come in order and once."""
    whole = b"".join(chunks)
    reader = ChunkReader(chunks)
    out = b""
    for size in sizes:
        assert reader.fill(size) == min(size, len(whole) - len(out))
        out += bytes(reader.read(size))
    reader.skip(3)
    out += whole[len(out) : len(out) + 3]
    assert out + bytes(reader.read(1000)) == whole


def test_text_is_no_data() -> None:
    """A list of strings is refused with what to do about it."""
    with pytest.raises(InvalidInput, match="encode"):
        ChunkReader(["text"]).read(1)  # type: ignore[list-item]
