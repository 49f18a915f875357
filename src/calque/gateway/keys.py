"""Access keys of S3: each stands for one access grant.

The database knows a key by the SHA-256 of its id, and keeps its secret and its grant encrypted
under a key derived from the id, which is not stored: the database alone opens nothing. So the id
itself is half a secret, and is shown and logged only as its fingerprint.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from calque.errors import IntegrityError, InvalidInput, NotFound
from calque.store.metabase.accounts import s3_keys as rows
from calque.store.metabase.engine.database import Database
from calque.store.metainfo.timestamps import moment_of
from calque.store.uplink.encryption.access import Prefix
from calque.store.uplink.encryption.cipher import CipherSuite, Sealed, seal, unseal
from calque.store.uplink.encryption.keys import SecretKey
from calque.store.uplink.grant import AccessGrant

TRUST = 0.9
"""Seconds that a key is believed without a look: a revocation is obeyed within a second."""

REMEMBERED = 4096
_SUITE = CipherSuite.AES_256_GCM
_MARK = "CQ"
_ID_BYTES, _SECRET_BYTES = 16, 30
_SHORTEST = 8
"""Digits of a fingerprint that name a key."""


@dataclass(frozen=True, slots=True)
class S3Key:
    """A key that may sign requests: its secret, and the grant it stands for."""

    hash: bytes
    secret: str = field(repr=False)
    grant: AccessGrant = field(repr=False)


@dataclass(frozen=True, slots=True)
class NewKey:
    """What is shown once, when a key is made."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    fingerprint: str


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """What can be told of a key afterwards."""

    fingerprint: str
    created: datetime
    name: str = ""
    prefixes: tuple[str, ...] = ()
    may: str = ""
    until: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a key may do: everything below some prefixes (none: all), some operations, a time."""

    prefixes: tuple[Prefix, ...] = ()
    read: bool = True
    write: bool = True
    list: bool = True
    delete: bool = True
    until: datetime | None = None

    def narrow(self, grant: AccessGrant) -> AccessGrant:
        operations = {name: getattr(self, name) for name in ("read", "write", "list", "delete")}
        if not self.prefixes and self.until is None and all(operations.values()):
            return grant
        return grant.restrict(*self.prefixes, **operations, not_after=self.until)

    def describe(self) -> dict[str, object]:
        may = [name for name in ("read", "write", "list", "delete") if getattr(self, name)]
        return {
            "prefixes": [f"{each.bucket}/{each.prefix}" for each in self.prefixes],
            "may": ",".join(may),
            "until": self.until.isoformat() if self.until else None,
        }


class AccessKeys:
    """The keys of a store. Safe to share between threads."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[bytes, tuple[S3Key, bytes, float]] = {}

    def make(self, grant: AccessGrant, limits: Limits | None = None, *, name: str = "") -> NewKey:
        """Make a key for what ``limits`` leave of a grant with the root key; shown this once."""
        limits = limits or Limits()
        access_key_id = _MARK + _base32(secrets.token_bytes(_ID_BYTES))
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        found = hash_id(access_key_id)
        record = {"secret": secret, "grant": limits.narrow(grant).serialize()}
        sealed = seal(_SUITE, _record_key(access_key_id), json.dumps(record).encode(), found)
        note = {"name": name, **limits.describe()}
        told = seal(_SUITE, _note_key(grant), json.dumps(note).encode(), found)
        row = rows.S3KeyRow(found, sealed.nonce + sealed.ciphertext, told.nonce + told.ciphertext)
        rows.insert_key(self._database, row)
        return NewKey(access_key_id, secret, fingerprint(found))

    def has_any(self) -> bool:
        """Whether a key was ever made and is there still."""
        return bool(rows.list_keys(self._database))

    def find(self, access_key_id: str) -> S3Key | None:
        """The key of an id, or None; read again when it is older than a moment."""
        if len(access_key_id) > 128:
            return None
        found, now = hash_id(access_key_id), self._clock()
        known = self._known.get(found)
        if known is not None and now - known[2] < TRUST:
            return known[0]
        row = rows.find_key(self._database, found)
        if row is None:
            with self._lock:
                self._known.pop(found, None)
            return None
        # Unsealed once: the row of a key never changes.
        key = known[0] if known and known[1] == row.sealed else _open_row(access_key_id, row)
        with self._lock:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[found] = (key, row.sealed, now)
        return key

    def list(self, grant: AccessGrant) -> Iterable[KeyInfo]:
        """The keys, oldest first; what they may is told to whoever has the grant they came from."""
        for row in rows.list_keys(self._database):
            created = moment_of(row.created_at)
            told = _open_note(grant, row)
            yield KeyInfo(
                fingerprint(row.key_hash),
                created,
                str(told.get("name") or ""),
                tuple(told.get("prefixes") or ()),
                str(told.get("may") or "unknown: made with another access"),
                told.get("until"),
            )

    def revoke(self, which: str) -> str:
        """Refuse a key from now on, named by its id or by 8 or more digits of its fingerprint."""
        hashes = [row.key_hash for row in rows.list_keys(self._database)]
        found = [each for each in hashes if each == hash_id(which)]
        if not found and len(which) >= _SHORTEST:
            found = [each for each in hashes if each.hex().startswith(which.lower())]
        if len(found) > 1:
            raise InvalidInput(f"{len(found)} keys begin with {which!r}: give more digits")
        if not found:
            raise NotFound(
                "there is no such key", hint="`calque store s3-key list` shows the fingerprints."
            )
        rows.delete_key(self._database, found[0])
        with self._lock:
            self._known.pop(found[0], None)
        return fingerprint(found[0])


def hash_id(access_key_id: str) -> bytes:
    """Under what the database keeps a key."""
    return hashlib.sha256(access_key_id.encode("utf-8", "surrogatepass")).digest()


def fingerprint(key_hash: bytes) -> str:
    """How a key is named where others may read."""
    return key_hash.hex()[:16]


def _record_key(access_key_id: str) -> SecretKey:
    # Not the hash that the database keeps, nor anything that follows from it.
    return SecretKey(hashlib.sha256(b"calque s3 record\x00" + access_key_id.encode()).digest())


def _note_key(grant: AccessGrant) -> SecretKey:
    if grant.encryption.root is None:
        raise InvalidInput("S3 keys are made with the access of the whole store")
    return grant.encryption.root.derive(b"s3 key notes")


def _open_row(access_key_id: str, row: rows.S3KeyRow) -> S3Key:
    sealed = Sealed(row.sealed[:12], row.sealed[12:])
    plain = unseal(_SUITE, _record_key(access_key_id), sealed, row.key_hash, what="an S3 key")
    record = json.loads(plain)
    return S3Key(row.key_hash, record["secret"], AccessGrant.parse(record["grant"]))


def _open_note(grant: AccessGrant, row: rows.S3KeyRow) -> dict[str, Any]:
    sealed = Sealed(row.note[:12], row.note[12:])
    try:
        plain = unseal(_SUITE, _note_key(grant), sealed, row.key_hash, what="a note")
    except IntegrityError:
        return {}
    told: dict[str, Any] = json.loads(plain)
    return told


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=")
