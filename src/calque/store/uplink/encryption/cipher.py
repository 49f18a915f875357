"""Authenticated ciphers of the store, and how keys are wrapped by keys."""

from __future__ import annotations

import os
from enum import IntEnum
from typing import NamedTuple, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from calque.errors import IntegrityError, Unsupported
from calque.store.chunks import Buffer
from calque.store.uplink.encryption.keys import KEY_SIZE, SecretKey

NONCE_SIZE = 12
TAG_SIZE = 16
WRAPPED_SIZE = KEY_SIZE + TAG_SIZE


class CipherSuite(IntEnum):
    """The cipher of an object: chosen when it is uploaded, obeyed ever after."""

    AES_256_GCM = 2
    CHACHA20_POLY1305 = 3


class Aead(Protocol):
    """What both ciphers offer; ``data`` may be any buffer."""

    def encrypt(self, nonce: bytes, data: Buffer, associated_data: bytes | None) -> bytes: ...

    def decrypt(self, nonce: bytes, data: Buffer, associated_data: bytes | None) -> bytes: ...


def aead(suite: int, key: SecretKey) -> Aead:
    """The cipher object of a suite under a key; Unsupported for a suite we do not know."""
    if suite == CipherSuite.AES_256_GCM:
        return AESGCM(key.reveal())
    if suite == CipherSuite.CHACHA20_POLY1305:
        return ChaCha20Poly1305(key.reveal())
    raise Unsupported(
        f"cipher suite {suite} is not known to this version of calque",
        hint="The object was written by a newer version: update calque to read it.",
    )


class Sealed(NamedTuple):
    """Ciphertext and the random nonce it was made with."""

    nonce: bytes
    ciphertext: bytes


def seal(suite: int, key: SecretKey, plain: bytes, purpose: bytes) -> Sealed:
    """Encrypt under a fresh random nonce, bound to a purpose."""
    nonce = os.urandom(NONCE_SIZE)
    return Sealed(nonce, aead(suite, key).encrypt(nonce, plain, purpose))


def unseal(
    suite: int, key: SecretKey, sealed: Sealed, purpose: bytes | None, *, what: str
) -> bytes:
    """The plain bytes again; IntegrityError names ``what`` when key, nonce or bytes do not fit."""
    cipher = aead(suite, key)
    if len(sealed.nonce) != NONCE_SIZE:
        raise IntegrityError(
            f"{what} has a nonce of {len(sealed.nonce)} bytes, {NONCE_SIZE} are needed"
        )
    try:
        return cipher.decrypt(sealed.nonce, sealed.ciphertext, purpose)
    except InvalidTag as error:
        raise IntegrityError(
            f"{what} cannot be decrypted with this access",
            hint="It was written with another passphrase, or it was damaged or tampered with.",
        ) from error


def wrap(suite: int, by: SecretKey, key: SecretKey, purpose: bytes) -> Sealed:
    """A key encrypted by another key; the nonce is new at each wrap."""
    return seal(suite, by, key.reveal(), purpose)


def unwrap(suite: int, by: SecretKey, sealed: Sealed, purpose: bytes, *, what: str) -> SecretKey:
    """The wrapped key; IntegrityError when it was wrapped by another key or for another purpose."""
    return SecretKey(unseal(suite, by, sealed, purpose, what=what))
