"""What is kept beside an object's bytes: a map of strings, encrypted under a key of its own.

The key is random and encrypts one map only, so the map's nonce is zero; the stored nonce is that
of the wrapped key. A copy re-wraps the key and leaves the map as it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from calque.errors import IntegrityError, InvalidInput
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.cipher import NONCE_SIZE, Sealed, aead, unseal, unwrap, wrap
from calque.store.uplink.encryption.keys import KEY_SIZE, SecretKey
from calque.store.uplink.utf8 import encode_utf8

LARGEST = 8192
"""Plain bytes of the map: its JSON in UTF-8."""

GivenMetadata = Mapping[str, str] | Callable[[], Mapping[str, str]]
"""A map, or what gives one once the last byte was read: a checksum is known no earlier."""

_PURPOSE = b"metadata key"
_NONCE = bytes(NONCE_SIZE)


@dataclass(frozen=True, slots=True)
class SealedMetadata:
    """Metadata as the satellite keeps it; all three empty when there is none."""

    nonce: bytes = b""
    encrypted: bytes = b""
    wrapped_key: bytes = b""


def seal_metadata(suite: int, located: Located, metadata: Mapping[str, str]) -> SealedMetadata:
    """Encrypt a map under a new key; an empty map is stored as none."""
    if not metadata:
        return SealedMetadata()
    plain = _encode(metadata)
    key = SecretKey(os.urandom(KEY_SIZE))
    wrapped = wrap(suite, located.metadata_key, key, _PURPOSE)
    return SealedMetadata(
        wrapped.nonce, aead(suite, key).encrypt(_NONCE, plain, None), wrapped.ciphertext
    )


def open_metadata(suite: int, located: Located, sealed: SealedMetadata) -> dict[str, str]:
    """The map again; empty where none is stored."""
    if not sealed.encrypted:
        return {}
    what = f"the metadata of {located.bucket}/{located.key}"
    key = _unwrap(suite, located, sealed.nonce, sealed.wrapped_key)
    plain = unseal(suite, key, Sealed(_NONCE, sealed.encrypted), None, what=what)
    decoded = json.loads(plain)
    if not isinstance(decoded, dict):
        raise IntegrityError(f"{what} is no map")
    return {str(name): str(value) for name, value in decoded.items()}


def rewrap_metadata_key(
    suite: int, old: Located, new: Located, nonce: bytes, wrapped: bytes
) -> Sealed | None:
    """The metadata key wrapped for another name; None where the object has no metadata."""
    if not wrapped:
        return None
    return wrap(suite, new.metadata_key, _unwrap(suite, old, nonce, wrapped), _PURPOSE)


def _unwrap(suite: int, located: Located, nonce: bytes, wrapped: bytes) -> SecretKey:
    what = f"the metadata key of {located.bucket}/{located.key}"
    return unwrap(suite, located.metadata_key, Sealed(nonce, wrapped), _PURPOSE, what=what)


def _encode(metadata: Mapping[str, str]) -> bytes:
    for name, value in metadata.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidInput(f"metadata maps text to text, and {name!r} does not")
    plain = encode_utf8(
        json.dumps(dict(metadata), ensure_ascii=False, separators=(",", ":")), "metadata"
    )
    if len(plain) > LARGEST:
        raise InvalidInput(f"metadata takes at most {LARGEST} bytes, this map takes {len(plain)}")
    return plain
