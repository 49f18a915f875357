"""Access grants: everything a client needs to reach a part of a project, in one line of text.

A grant holds the satellite's address, an API key and an encryption access. Whoever has the text
has the access: it is never logged, shown or pickled. A grant can be narrowed offline, by anyone,
to prefixes, operations and a time; the satellite enforces what was narrowed, and the encryption
access holds no key outside the prefixes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn

from calque.errors import CalqueError, InvalidInput
from calque.store.metainfo import Action, AllowedPath, ApiKey
from calque.store.metainfo.timestamps import as_utc
from calque.store.uplink.encryption.access import EncryptionAccess, Prefix, PrefixKey
from calque.store.uplink.encryption.keys import SecretKey

GRANT_MARK = "calque1-"
_CHECKSUM = 8


@dataclass(frozen=True, slots=True)
class AccessGrant:
    """Address, API key and encryption access; shown without its secrets."""

    address: str
    api_key: ApiKey = field(repr=False)
    encryption: EncryptionAccess = field(repr=False)

    def serialize(self) -> str:
        """The grant as one line of text. It is a secret: treat it as a password."""
        payload = json.dumps(_to_json(self), separators=(",", ":")).encode()
        body = payload + _checksum(payload)
        return GRANT_MARK + base64.urlsafe_b64encode(body).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> AccessGrant:
        """Read a serialised grant; InvalidInput, without showing it, when it is not whole."""
        text = text.strip()
        if not text.startswith(GRANT_MARK):
            raise InvalidInput(f"an access grant begins with {GRANT_MARK!r}, this text does not")
        try:
            body = base64.b64decode(
                _pad_base64(text[len(GRANT_MARK) :]), altchars=b"-_", validate=True
            )
            payload, checksum = body[:-_CHECKSUM], body[-_CHECKSUM:]
            if _checksum(payload) != checksum:
                raise InvalidInput("the checksum is wrong")
            return _from_json(json.loads(payload))
        except (ValueError, KeyError, TypeError, CalqueError) as error:
            raise InvalidInput(
                "the access grant is damaged: a part of it is missing or was changed",
                hint="Copy the whole line, from its first to its last character.",
            ) from error

    def restrict(
        self,
        *prefixes: Prefix,
        read: bool = True,
        write: bool = True,
        list: bool = True,
        delete: bool = True,
        not_before: datetime | None = None,
        not_after: datetime | None = None,
    ) -> AccessGrant:
        """A grant for less: these prefixes (none given: as before), operations and time only.

        Nothing is sent; the satellite checks the narrowed key at every call. It cannot be undone.
        """
        encryption = self.encryption.restrict(prefixes) if prefixes else self.encryption
        allowed = {
            Action.READ: read,
            Action.WRITE: write,
            Action.LIST: list,
            Action.DELETE: delete,
        }
        api_key = self.api_key.restrict(
            actions=None if all(allowed.values()) else [a for a, yes in allowed.items() if yes],
            paths=_paths(encryption) if prefixes else None,
            not_before=_microseconds(not_before),
            not_after=_microseconds(not_after),
        )
        return AccessGrant(self.address, api_key, encryption)

    def __reduce__(self) -> NoReturn:
        raise TypeError("an access grant is not pickled: name it by its file or environment")


def _paths(encryption: EncryptionAccess) -> Sequence[AllowedPath]:
    return [AllowedPath(each.prefix.bucket, each.encrypted) for each in encryption.prefixes]


def _microseconds(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    return int(as_utc(moment).timestamp() * 1_000_000)


def _to_json(grant: AccessGrant) -> dict[str, Any]:
    # Where a folder lies on this machine is nobody else's business.
    address = grant.address if "://" in grant.address else ""
    data: dict[str, Any] = {"a": address, "k": _text(bytes(grant.api_key))}
    if grant.encryption.root is not None:
        data["r"] = _text(grant.encryption.root.reveal())
    data["p"] = [
        [each.prefix.bucket, each.prefix.prefix, _text(each.encrypted), _text(each.key.reveal())]
        for each in grant.encryption.prefixes
    ]
    return data


def _from_json(data: dict[str, Any]) -> AccessGrant:
    root = SecretKey(_bytes(data["r"])) if "r" in data else None
    prefixes = tuple(
        PrefixKey(Prefix(bucket, prefix), _bytes(encrypted), SecretKey(_bytes(key)))
        for bucket, prefix, encrypted, key in data["p"]
    )
    access = EncryptionAccess(root, prefixes)
    return AccessGrant(str(data["a"]), ApiKey.parse(_bytes(data["k"])), access)


def _checksum(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()[:_CHECKSUM]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _pad_base64(text: str) -> bytes:
    return text.encode() + b"=" * (-len(text) % 4)
