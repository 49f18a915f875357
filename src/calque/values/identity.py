"""Which object is meant, and which bytes: identities that two servers do not share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from calque.values.metadata import Metadata

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ObjectIdentity:
    """One object among those of all servers. Equal identities are one object.

    ``server`` is a normalised endpoint, empty where the location alone says which one is meant;
    ``account`` tells whose names these are, where a server may keep several apart and we know it.
    """

    location: str
    server: str = ""
    account: str | None = None

    @property
    def name(self) -> str:
        """What stays the same when credentials change."""
        return f"{self.server} {self.location}" if self.server else self.location


def normalise_endpoint(url: str) -> str:
    """An endpoint as two spellings of it share it: no user, case, default port or last slash."""
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").rstrip(".")
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(scheme)) else f":{parts.port}"
    return f"{scheme}://{host}{port}{parts.path.rstrip('/')}"


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """The identity of an object's bytes: a location, and what its service says of them."""

    location: str
    size: int
    etag: str | None = None
    version: str | None = None
    last_modified: datetime | None = None
    token: str | None = None

    @classmethod
    def of(cls, location: str, metadata: Metadata) -> SourceIdentity:
        """Made past the constructor, as :meth:`Metadata.from_listing`: of millions of files."""
        made: Any = _Filled()
        made.location = location
        made.size = metadata.size
        made.etag = metadata.etag
        made.version = metadata.version
        made.last_modified = metadata.last_modified
        made.token = metadata.token
        made.__class__ = cls
        identity: SourceIdentity = made
        return identity

    @property
    def pin(self) -> str | None:
        """What ``if_match`` accepts to be sure of the same bytes: the etag, else the token."""
        return self.etag or self.token

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that :meth:`from_json` reads back."""
        stamp = self.last_modified.isoformat() if self.last_modified else None
        return {
            "location": self.location,
            "size": self.size,
            "etag": self.etag,
            "version": self.version,
            "last_modified": stamp,
            "token": self.token,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SourceIdentity:
        stamp = data.get("last_modified")
        return cls(
            location=data["location"],
            size=data["size"],
            etag=data.get("etag"),
            version=data.get("version"),
            last_modified=datetime.fromisoformat(stamp) if stamp else None,
            token=data.get("token"),
        )


class _Filled:
    """The fields of :class:`SourceIdentity`, which can be set; equal slots let it become one."""

    __slots__ = SourceIdentity.__slots__
