"""API keys: a chain of HMACs that anyone holding a key can lengthen, and nobody shorten.

A key is a random head, a list of restrictions (caveats) and a tail. The first tail is
HMAC(secret, head), each restriction makes the next: HMAC(tail, caveat). Whoever holds a
key can restrict it further offline; only the satellite knows the secret, so only it can
check the chain, and nobody can take a restriction away.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from calque.errors import InvalidInput, PermissionDenied
from calque.store.metainfo.pb import tokens_pb2 as tokens

HEAD_SIZE = 16
SECRET_SIZE = 32
MAX_CAVEATS = 32
MAX_KEY_SIZE = 64 * 1024
DELIMITER = b"/"


class Action(IntEnum):
    """What a key may be allowed to do."""

    READ = 1
    WRITE = 2
    LIST = 3
    DELETE = 4


@dataclass(frozen=True)
class AllowedPath:
    """A bucket, or what lies below an encrypted prefix of whole components in it."""

    bucket: str
    encrypted_prefix: bytes = b""

    def covers(self, bucket: str, key: bytes) -> bool:
        """Whether ``key`` (or a prefix to be listed) lies within this path.

        An object that bears the prefix's own name, without the delimiter, lies beside it.
        """
        if bucket != self.bucket:
            return False
        folder = self.encrypted_prefix.removesuffix(DELIMITER) + DELIMITER
        return self.whole_bucket or key.startswith(folder)

    @property
    def whole_bucket(self) -> bool:
        """Whether nothing of the bucket is left out."""
        return not self.encrypted_prefix


@dataclass(frozen=True)
class Restriction:
    """One caveat, unpacked: ``None`` leaves that side unrestricted."""

    actions: frozenset[Action] | None = None
    paths: tuple[AllowedPath, ...] | None = None
    not_before: int | None = None
    not_after: int | None = None

    def __post_init__(self) -> None:
        if self.actions is not None and not self.actions:
            raise InvalidInput("a restriction to no action at all is of no use")
        if self.paths is not None and not self.paths:
            raise InvalidInput("a restriction to no path at all is of no use")
        if self.not_after == 0:
            # Zero is how a caveat says that it has no end.
            raise InvalidInput("a key that ended in 1970 is of no use")

    def valid_at(self, now: int) -> bool:
        """Whether the time is right."""
        early = self.not_before is not None and now < self.not_before
        late = self.not_after is not None and now >= self.not_after
        return not (early or late)

    def allows(self, action: Action, bucket: str, key: bytes) -> bool:
        """Whether the action is allowed at this key."""
        return self.allows_action(action) and (
            self.paths is None or any(path.covers(bucket, key) for path in self.paths)
        )

    def allows_action(self, action: Action) -> bool:
        """Whether the action is allowed anywhere."""
        return self.actions is None or action in self.actions

    def allows_bucket(self, action: Action, bucket: str, *, whole: bool) -> bool:
        """Whether the action is allowed on the bucket itself, or on a part of it."""
        return self.allows_action(action) and (
            self.paths is None
            or any(
                path.bucket == bucket and (path.whole_bucket or not whole) for path in self.paths
            )
        )


@dataclass(frozen=True)
class ApiKey:
    """A key as a client holds it; its parts are hidden from ``repr``."""

    head: bytes
    caveats: tuple[bytes, ...]
    tail: bytes

    @classmethod
    def create(cls, secret: bytes) -> ApiKey:
        """A new unrestricted key whose chain starts from ``secret``."""
        head = os.urandom(HEAD_SIZE)
        return cls(head, (), _link(secret, head))

    @classmethod
    def parse(cls, data: bytes) -> ApiKey:
        """The key in ``data``; ``PermissionDenied`` when it cannot be one."""
        if not data:
            raise PermissionDenied("the API key is missing")
        try:
            if len(data) > MAX_KEY_SIZE:
                raise DecodeError("too long")
            message = tokens.ApiKeyData.FromString(data)
        except DecodeError as error:
            raise PermissionDenied("the API key cannot be read") from error
        key = cls(message.head, tuple(message.caveats), message.tail)
        if len(key.head) != HEAD_SIZE or len(key.tail) != sha256().digest_size:
            raise PermissionDenied("the API key cannot be read")
        if len(key.caveats) > MAX_CAVEATS:
            raise PermissionDenied(f"the API key has more than {MAX_CAVEATS} restrictions")
        return key

    def __repr__(self) -> str:
        return f"ApiKey(caveats={len(self.caveats)})"

    def __bytes__(self) -> bytes:
        message = tokens.ApiKeyData(head=self.head, caveats=self.caveats, tail=self.tail)
        return message.SerializeToString()

    def restrict(
        self,
        *,
        actions: Iterable[Action] | None = None,
        paths: Iterable[AllowedPath] | None = None,
        not_before: int | None = None,
        not_after: int | None = None,
    ) -> ApiKey:
        """A weaker key; needs no satellite. Times are microseconds since 1970."""
        allowed = None if actions is None else frozenset(actions)
        inside = None if paths is None else tuple(paths)
        caveat = _pack(Restriction(allowed, inside, not_before, not_after))
        return ApiKey(self.head, (*self.caveats, caveat), _link(self.tail, caveat))

    def tails(self, secret: bytes) -> list[bytes]:
        """Every tail of the chain, from the unrestricted key to this one.

        ``PermissionDenied`` when the chain does not end in this key's tail.
        """
        chain = [_link(secret, self.head)]
        for caveat in self.caveats:
            chain.append(_link(chain[-1], caveat))
        if not hmac.compare_digest(chain[-1], self.tail):
            raise PermissionDenied("the API key is not one of this satellite's")
        return chain

    def restrictions(self) -> list[Restriction]:
        """The restrictions, unpacked."""
        return [_unpack(caveat) for caveat in self.caveats]


def _link(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, sha256)


def _pack(restriction: Restriction) -> bytes:
    return tokens.Caveat(
        operations=sorted(restriction.actions or ()),
        paths=[
            tokens.Path(bucket=path.bucket, encrypted_prefix=path.encrypted_prefix)
            for path in restriction.paths or ()
        ],
        not_before=restriction.not_before or 0,
        not_after=restriction.not_after or 0,
        nonce=os.urandom(8),
    ).SerializeToString()


def _unpack(caveat: bytes) -> Restriction:
    try:
        message = tokens.Caveat.FromString(caveat)
        if any(len(UnknownFieldSet(part)) for part in (message, *message.paths)):
            raise ValueError("a field of a later release")
        actions = frozenset(Action(number) for number in message.operations)
    except (DecodeError, ValueError) as error:
        # A restriction that cannot be understood must not be ignored.
        raise PermissionDenied("the API key has a restriction this satellite does not know") from (
            error
        )
    return Restriction(
        actions or None,
        tuple(AllowedPath(path.bucket, path.encrypted_prefix) for path in message.paths) or None,
        message.not_before or None,
        message.not_after or None,
    )
