"""Keys of the client: a passphrase becomes a root key, a root key a tree of keys."""

from __future__ import annotations

from hashlib import sha256
from hmac import compare_digest
from typing import Any, NoReturn

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from calque.errors import InvalidInput

KEY_SIZE = 32

_PASSES, _LANES, _MEMORY_KIB = 2, 1, 64 * 1024
_SMALLEST_SALT = 16

_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))
_INNER_REST, _OUTER_REST = b"\x36" * KEY_SIZE, b"\x5c" * KEY_SIZE


class SecretKey:
    """32 secret bytes. Never shown, never pickled; other keys are derived from it by label."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_SIZE:
            raise InvalidInput(f"a key has {KEY_SIZE} bytes, not {len(secret)}")
        self._secret = bytes(secret)

    @classmethod
    def from_passphrase(cls, passphrase: str, salt: bytes) -> SecretKey:
        """The root key of a passphrase: Argon2id, 64 MiB, two passes.

        The same passphrase and salt always give the same key; the salt is not secret and has at
        least 16 bytes.
        """
        if not passphrase:
            raise InvalidInput("a passphrase cannot be empty")
        if len(salt) < _SMALLEST_SALT:
            raise InvalidInput(f"a salt has at least {_SMALLEST_SALT} bytes, not {len(salt)}")
        kdf = Argon2id(
            salt=salt,
            length=KEY_SIZE,
            iterations=_PASSES,
            lanes=_LANES,
            memory_cost=_MEMORY_KIB,
        )
        try:
            return cls(kdf.derive(passphrase.encode()))
        except UnicodeEncodeError:
            # Without the cause, which would show the passphrase.
            raise InvalidInput("a passphrase must be valid Unicode") from None

    def reveal(self) -> bytes:
        """The bytes themselves: for ciphers and for the serialised grant, for nothing else."""
        return self._secret

    def derive(self, label: bytes) -> SecretKey:
        """The child key of a label; it tells nothing of this key or of its other children."""
        return SecretKey(self.expand(label, KEY_SIZE))

    def expand(self, label: bytes, length: int) -> bytes:
        """HKDF-Expand (RFC 5869, SHA-256): ``length`` bytes for a label.

        The key is uniformly random already, so no extract step is needed.
        """
        block, out, counter = b"", b"", 1
        while len(out) < length:
            block = _hmac(self._secret, block + label + bytes((counter,)))
            out += block
            counter += 1
        return out[:length]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretKey) and compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash((SecretKey, self._secret))

    def __repr__(self) -> str:
        return "SecretKey(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret key is not pickled: send the serialised grant instead")

    def __getstate__(self) -> Any:
        self.__reduce__()


def _hmac(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA-256 (RFC 2104) under a key of half a block.

    The standard library makes a context for each, which costs twice as much as both hashes; names
    and keys of an object take four, and a prefix that is moved has very many objects.
    """
    inner = sha256(key.translate(_INNER) + _INNER_REST + message).digest()
    return sha256(key.translate(_OUTER) + _OUTER_REST + inner).digest()
