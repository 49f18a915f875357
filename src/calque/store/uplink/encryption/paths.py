"""Object keys as the satellite sees them: encrypted component by component.

A key is cut at ``/``. Each component is encrypted with AES-SIV, deterministically, under a key
that its parent components give, so equal prefixes stay equal prefixes and the satellite can list
by prefix without knowing a name. Ciphertext is written in URL-safe base64: it never holds a
``/``, and no component is empty, whatever the plain one was.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from calque.errors import IntegrityError, InvalidInput
from calque.store.uplink.encryption.keys import SecretKey
from calque.store.uplink.utf8 import encode_utf8

SEPARATOR = "/"
_SIV_KEY_SIZE = 64
LARGEST_KEY = 1024
"""Bytes of a plain key in UTF-8, as S3 has it; a satellite takes what they become encrypted."""


@dataclass(frozen=True, slots=True)
class EncryptedPath:
    """An encrypted key, and the key of the key tree that belongs to it."""

    encrypted: bytes
    key: SecretKey


def check_key(key: str) -> None:
    """InvalidInput unless the key can name an object."""
    if not key:
        raise InvalidInput("an object key cannot be empty")
    size = len(encode_utf8(key, "a key"))
    if size > LARGEST_KEY:
        raise InvalidInput(f"an object key has at most {LARGEST_KEY} bytes, this one has {size}")


def bucket_key(root: SecretKey, bucket: str) -> SecretKey:
    """The key of everything in a bucket."""
    return root.derive(b"bucket\x00" + encode_utf8(bucket, "the name of a bucket"))


class NameCipher:
    """Encrypts and decrypts the names of one level: those that share a parent."""

    def __init__(self, parent: SecretKey) -> None:
        self._cipher = AESSIV(parent.expand(b"names", _SIV_KEY_SIZE))

    def encrypt(self, component: str) -> bytes:
        """One component as the satellite knows it."""
        encrypted = self._cipher.encrypt(encode_utf8(component, "a key"), None)
        return base64.urlsafe_b64encode(encrypted).rstrip(b"=")

    def decrypt(self, encrypted: bytes) -> str:
        """One plain component; IntegrityError where it is not under this key."""
        try:
            return self._cipher.decrypt(_unarmour(encrypted), None).decode()
        except (InvalidTag, ValueError, binascii.Error) as error:
            raise IntegrityError(
                "the name of an object cannot be decrypted with this access",
                hint="It was written with another passphrase, or the name was tampered with.",
            ) from error


def encrypt_path(base: SecretKey, path: str) -> EncryptedPath:
    """The encrypted form of a whole path below ``base``, and its path key."""
    components = []
    for component in path.split(SEPARATOR):
        components.append(NameCipher(base).encrypt(component))
        base = child_key(base, component)
    return EncryptedPath(b"/".join(components), base)


def encrypt_prefix(base: SecretKey, prefix: str) -> EncryptedPath:
    """The encrypted form of a prefix, which is empty or ends in ``/``, and the key below it."""
    if not prefix:
        return EncryptedPath(b"", base)
    if not prefix.endswith(SEPARATOR):
        raise InvalidInput(f"a prefix must be empty or end in '/', this one does not: {prefix!r}")
    path = encrypt_path(base, prefix[:-1])
    return EncryptedPath(path.encrypted + b"/", path.key)


def decrypt_path(base: SecretKey, encrypted: bytes) -> str:
    """The plain path below ``base``; IntegrityError where a component is not under this key."""
    components = []
    for component in encrypted.split(b"/"):
        plain = NameCipher(base).decrypt(component)
        components.append(plain)
        base = child_key(base, plain)
    return SEPARATOR.join(components)


def child_key(parent: SecretKey, component: str) -> SecretKey:
    """The key of what lies below one more component."""
    return parent.derive(b"component\x00" + encode_utf8(component, "a key"))


def _unarmour(encrypted: bytes) -> bytes:
    padding = b"=" * (-len(encrypted) % 4)
    return base64.b64decode(encrypted + padding, altchars=b"-_", validate=True)
