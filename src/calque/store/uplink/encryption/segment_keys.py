"""The keys of segments: one random key each, wrapped for the object's name and the position."""

from __future__ import annotations

import os
from dataclasses import dataclass
from struct import Struct

from cryptography.exceptions import InvalidTag

from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.cipher import (
    NONCE_SIZE,
    WRAPPED_SIZE,
    Sealed,
    aead,
    unwrap,
    wrap,
)
from calque.store.uplink.encryption.keys import KEY_SIZE, SecretKey

_TWO_NUMBERS = Struct(">II")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where a segment stands: its part, and its index within the part."""

    part: int
    index: int

    def purpose(self) -> bytes:
        """Binds a wrapped key to its position, so that segments cannot be exchanged unnoticed."""
        return b"segment key" + _TWO_NUMBERS.pack(self.part, self.index)


def new_segment_key() -> SecretKey:
    return SecretKey(os.urandom(KEY_SIZE))


def wrap_segment_key(suite: int, located: Located, key: SecretKey, position: Position) -> Sealed:
    """The key of a segment, wrapped under a fresh nonce."""
    return wrap(suite, located.content_key, key, position.purpose())


def unwrap_segment_key(
    suite: int, located: Located, sealed: Sealed, position: Position
) -> SecretKey:
    """The key of a segment; IntegrityError under another name, passphrase or position."""
    what = f"the key of segment {position.part}:{position.index} of {located.bucket}/{located.key}"
    return unwrap(suite, located.content_key, sealed, position.purpose(), what=what)


class SegmentKeyRewrap:
    """The keys of an object's segments for another name: all that a copy or a move does.

    Both ciphers are made once, however many segments there are.
    """

    def __init__(self, suite: int, old: Located, new: Located) -> None:
        self._suite = suite
        self._old = old
        self._unwrapping = aead(suite, old.content_key)
        self._wrapping = aead(suite, new.content_key)

    def rewrap(self, sealed: Sealed, position: Position) -> Sealed:
        """The same key, wrapped under a fresh nonce."""
        purpose = position.purpose()
        key = self._unwrap(sealed, purpose)
        if key is None:  # and this says why
            key = unwrap_segment_key(self._suite, self._old, sealed, position).reveal()
        nonce = os.urandom(NONCE_SIZE)
        return Sealed(nonce, self._wrapping.encrypt(nonce, key, purpose))

    def _unwrap(self, sealed: Sealed, purpose: bytes) -> bytes | None:
        if len(sealed.nonce) != NONCE_SIZE or len(sealed.ciphertext) != WRAPPED_SIZE:
            return None
        try:
            return self._unwrapping.decrypt(sealed.nonce, sealed.ciphertext, purpose)
        except InvalidTag:
            return None
