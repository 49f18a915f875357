"""The etag of a part, which only the client may know: encrypted beside each of its segments.

Its key comes from the segment's own key, so it stays readable on a copy without being touched.
A segment's key seals one etag, under a nonce of zeros. Slices share the key of the segment that
they are cut from, so each of theirs has a random nonce, which stands before it.
"""

from __future__ import annotations

from calque.store.uplink.encryption.cipher import NONCE_SIZE, Sealed, aead, seal, unseal
from calque.store.uplink.encryption.keys import SecretKey
from calque.store.uplink.utf8 import encode_utf8

_NONCE = bytes(NONCE_SIZE)
_SLICE = b"etag of a slice"


def seal_etag(suite: int, segment_key: SecretKey, etag: str) -> bytes:
    """An etag for the satellite to keep; empty for none."""
    if not etag:
        return b""
    return aead(suite, _key(segment_key)).encrypt(_NONCE, encode_utf8(etag, "an etag"), None)


def seal_slice_etag(suite: int, segment_key: SecretKey, etag: str) -> bytes:
    """The etag of a slice."""
    sealed = seal(suite, _key(segment_key), encode_utf8(etag, "an etag"), _SLICE)
    return sealed.nonce + sealed.ciphertext


def open_slice_etag(suite: int, segment_key: SecretKey, encrypted: bytes) -> str:
    """The etag of a slice again."""
    sealed = Sealed(encrypted[:NONCE_SIZE], encrypted[NONCE_SIZE:])
    return unseal(suite, _key(segment_key), sealed, _SLICE, what="the etag of a part").decode()


def open_etag(suite: int, segment_key: SecretKey, encrypted: bytes) -> str:
    """The etag again; empty where none was given."""
    if not encrypted:
        return ""
    sealed = Sealed(_NONCE, encrypted)
    return unseal(suite, _key(segment_key), sealed, None, what="the etag of a part").decode()


def _key(segment_key: SecretKey) -> SecretKey:
    return segment_key.derive(b"etag")
