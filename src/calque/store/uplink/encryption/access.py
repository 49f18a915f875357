"""Which names and bytes an access can read: the root key, or keys of some prefixes only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from calque.errors import InvalidInput, PermissionDenied
from calque.store.uplink.encryption.keys import SecretKey
from calque.store.uplink.encryption.paths import (
    EncryptedPath,
    bucket_key,
    check_key,
    encrypt_path,
    encrypt_prefix,
)


@dataclass(frozen=True, slots=True)
class Prefix:
    """A part of a project: a bucket, or what lies below a prefix (ending in ``/``) in it."""

    bucket: str
    prefix: str = ""

    def __post_init__(self) -> None:
        if not self.bucket:
            raise InvalidInput("a prefix needs a bucket")
        if self.prefix and not self.prefix.endswith("/"):
            raise InvalidInput(
                f"a prefix must be empty or end in '/', this one does not: {self.prefix!r}"
            )

    def covers(self, bucket: str, path: str) -> bool:
        return bucket == self.bucket and path.startswith(self.prefix)


@dataclass(frozen=True, slots=True)
class PrefixKey:
    """The key of a prefix, and the prefix as the satellite knows it."""

    prefix: Prefix
    encrypted: bytes
    key: SecretKey


@dataclass(frozen=True)
class Located:
    """An object by both its names, and the keys that wrap its keys."""

    bucket: str
    key: str
    encrypted: bytes
    path_key: SecretKey = field(repr=False)

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}"

    @cached_property
    def content_key(self) -> SecretKey:
        """Wraps the keys of the object's segments."""
        return self.path_key.derive(b"content")

    @cached_property
    def metadata_key(self) -> SecretKey:
        """Wraps the key of the object's metadata."""
        return self.path_key.derive(b"metadata")


@dataclass(frozen=True, slots=True)
class EncryptionAccess:
    """Either the root key, which reaches everything, or the keys of some prefixes."""

    root: SecretKey | None = None
    prefixes: tuple[PrefixKey, ...] = ()

    def __post_init__(self) -> None:
        if self.root is None and not self.prefixes:
            raise InvalidInput("an encryption access needs a root key or the key of a prefix")

    def locate(self, bucket: str, key: str) -> Located:
        """The object's encrypted name and keys; PermissionDenied outside this access."""
        check_key(key)
        base = self._base(bucket, key)
        path = encrypt_path(base.key, key[len(base.prefix.prefix) :])
        encrypted = base.encrypted + path.encrypted
        return Located(bucket, key, encrypted, path.key)

    def below(self, bucket: str, prefix: str) -> EncryptedPath:
        """A prefix (empty or ending in ``/``) as the satellite knows it, and the key below it."""
        base = self._base(bucket, prefix)
        path = encrypt_prefix(base.key, prefix[len(base.prefix.prefix) :])
        return EncryptedPath(base.encrypted + path.encrypted, path.key)

    def restrict(self, prefixes: Sequence[Prefix]) -> EncryptionAccess:
        """An access to these prefixes alone: their keys, from which no other key can be had."""
        return EncryptionAccess(
            prefixes=tuple(
                PrefixKey(each, path.encrypted, path.key)
                for each in prefixes
                for path in (self.below(each.bucket, each.prefix),)
            )
        )

    def _base(self, bucket: str, path: str) -> PrefixKey:
        if self.root is not None:
            return PrefixKey(Prefix(bucket), b"", bucket_key(self.root, bucket))
        for each in self.prefixes:
            if each.prefix.covers(bucket, path):
                return each
        reach = ", ".join(f"{each.prefix.bucket}/{each.prefix.prefix}" for each in self.prefixes)
        raise PermissionDenied(
            f"this access does not reach {bucket}/{path}", hint=f"It reaches: {reach}"
        )
