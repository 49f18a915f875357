"""The content of a segment: blocks encrypted under a key of the segment's own.

The key encrypts one segment only, so the nonce of a block is its number, from zero. The last
block is marked in the associated data: a segment cut short at a block border does not decrypt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag

from calque.errors import IntegrityError, InvalidInput
from calque.store.chunks import Buffer, ChunkReader
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.encryption.cipher import NONCE_SIZE, TAG_SIZE, CipherSuite, aead
from calque.store.uplink.encryption.keys import SecretKey

DEFAULT_BLOCK = 256 * 1024
"""Encrypted bytes of a full block."""

_MORE, _LAST = b"\x00", b"\x01"


@dataclass(frozen=True, slots=True)
class EncryptionParameters:
    """How an object's bytes are encrypted: cipher suite, and encrypted bytes of a full block."""

    suite: int = CipherSuite.AES_256_GCM
    block_size: int = DEFAULT_BLOCK

    def __post_init__(self) -> None:
        if self.block_size <= TAG_SIZE:
            raise InvalidInput(f"a block needs more than {TAG_SIZE} bytes, not {self.block_size}")

    @property
    def plain_block(self) -> int:
        return self.block_size - TAG_SIZE

    def message(self) -> pb.EncryptionParameters:
        """As the satellite keeps them."""
        return pb.EncryptionParameters(
            cipher_suite=self.suite,  # type: ignore[arg-type]  # the same numbers
            block_size=self.block_size,
        )

    def block_count(self, plain_size: int) -> int:
        """Blocks of a segment; one of no bytes has one block, so that its end is authenticated."""
        return max(1, -(-plain_size // self.plain_block))

    def encrypted_size(self, plain_size: int) -> int:
        return plain_size + TAG_SIZE * self.block_count(plain_size)


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """The blocks that hold a plain range, and what to cut off at both ends."""

    first: int
    count: int
    skip: int
    """Plain bytes of the first block before the range."""
    length: int
    """Plain bytes of the range."""


def span_of(parameters: EncryptionParameters, offset: int, length: int) -> BlockSpan:
    """Which blocks to decrypt for ``length`` (at least 1) plain bytes from ``offset``."""
    first = offset // parameters.plain_block
    last = (offset + length - 1) // parameters.plain_block
    return BlockSpan(first, last - first + 1, offset - first * parameters.plain_block, length)


class BlockCipher:
    """Encrypts and decrypts the blocks of one segment."""

    def __init__(self, key: SecretKey, parameters: EncryptionParameters) -> None:
        self._cipher = aead(parameters.suite, key)

    def encrypt(self, number: int, plain: Buffer, *, last: bool) -> bytes:
        return self._cipher.encrypt(_nonce(number), plain, _LAST if last else _MORE)

    def decrypt(self, number: int, block: Buffer, *, last: bool) -> bytes:
        """The plain block; IntegrityError when a bit, the number or the end mark is wrong."""
        try:
            return self._cipher.decrypt(_nonce(number), block, _LAST if last else _MORE)
        except InvalidTag as error:
            raise IntegrityError(
                f"block {number} of the segment does not decrypt: its bytes are damaged"
            ) from error


class SegmentEncryption:
    """Encrypts one segment off a stream: iterate for the blocks, then ask for the size.

    Takes up to ``limit`` plain bytes. Memory is one block, and the byte after it that tells
    whether the block is the last.
    """

    def __init__(self, cipher: BlockCipher, source: ChunkReader, limit: int, block: int) -> None:
        self._cipher = cipher
        self._source = source
        self._limit = limit
        self._block = block
        self.plain_size = 0
        self.ends_source = False
        """Whether nothing of the source is left behind this segment; known after the last block."""

    def __iter__(self) -> Iterator[bytes]:
        number, last = 0, False
        while not last:
            plain = self._source.read(min(self._block, self._limit - self.plain_size))
            self.plain_size += len(plain)
            self.ends_source = not self._source.fill(1)
            last = self.plain_size == self._limit or self.ends_source
            yield self._cipher.encrypt(number, plain, last=last)
            number += 1


def _nonce(number: int) -> bytes:
    return number.to_bytes(NONCE_SIZE, "big")
