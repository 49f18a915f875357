"""The keys of segments: one random key each, wrapped for the object's name and the position."""

from __future__ import annotations

import os
from dataclasses import dataclass

from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.cipher import Sealed, unwrap, wrap
from calque.store.uplink.encryption.keys import KEY_SIZE, SecretKey


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where a segment stands: its part, and its index within the part."""

    part: int
    index: int

    def purpose(self) -> bytes:
        """Binds a wrapped key to its position, so that segments cannot be exchanged unnoticed."""
        return b"segment key" + self.part.to_bytes(4, "big") + self.index.to_bytes(4, "big")


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


def rewrap_segment_key(
    suite: int, old: Located, new: Located, sealed: Sealed, position: Position
) -> Sealed:
    """The same key for another name: what a copy and a move do, and all they do."""
    key = unwrap_segment_key(suite, old, sealed, position)
    return wrap_segment_key(suite, new, key, position)
