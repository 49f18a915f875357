"""Which bytes are meant: the identity of a source at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from calque.values.metadata import Metadata


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
        return cls(
            location=location,
            size=metadata.size,
            etag=metadata.etag,
            version=metadata.version,
            last_modified=metadata.last_modified,
            token=metadata.token,
        )

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
