"""What is known about an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import Any

EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Checksum:
    """A checksum of the whole object, by the service's name (``crc32c``, ``md5`` …).

    The value is the base64 of the checksum's bytes, highest first, as all clouds write it: so that
    values of two services can be compared.
    """

    algorithm: str
    value: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """An object or a directory, as ``stat``, ``list``, ``write`` and ``copy`` report it.

    A listing fills what the service lists; ``stat`` fills all it knows. ``None`` means unknown.
    """

    path: str
    size: int = 0
    is_dir: bool = False
    etag: str | None = None
    version: str | None = None
    last_modified: datetime | None = None
    token: str | None = None
    """Where there is no etag: what pins the bytes (on a file system inode, mtime and ctime)."""
    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    expires: str | None = None
    user: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    tags: Mapping[str, str] | None = None
    storage_class: str | None = None
    checksum: Checksum | None = None

    @property
    def pin(self) -> str | None:
        """What ``if_match`` accepts to be sure of the same bytes: the etag, else the token."""
        return self.etag or self.token

    def details(self) -> dict[str, Any] | None:
        """All that is known besides path and identity, as plain values; None if that is nothing."""
        told = _details(self)
        if told == _NOTHING and not self.user:
            return None  # as many listings have it, and they make millions of these
        found: dict[str, Any] = {
            name: value for name, value in zip(_DETAILS, told, strict=False) if value is not None
        }
        for name, some in (("user", self.user), ("tags", self.tags)):
            if some:
                found[name] = dict(some)
        if self.checksum is not None:
            found["checksum"] = {self.checksum.algorithm: self.checksum.value}
        return found or None

    @classmethod
    def from_listing(
        cls,
        path: str,
        size: int,
        last_modified: datetime | None = None,
        *,
        etag: str | None = None,
        token: str | None = None,
        storage_class: str | None = None,
    ) -> Metadata:
        """An object as listings report it; everything else is unknown.

        Equal to what the constructor makes, in an eighth of its time: a frozen dataclass sets each
        field by the slow way round, and listings make millions of these. So it is filled as what
        is not frozen, and becomes what it is to be.
        """
        made: Any = _Filled()
        made.path = path
        made.size = size
        made.is_dir = False
        made.etag = etag
        made.version = None
        made.last_modified = last_modified
        made.token = token
        made.content_type = None
        made.content_encoding = None
        made.content_language = None
        made.content_disposition = None
        made.cache_control = None
        made.expires = None
        made.user = EMPTY
        made.tags = None
        made.storage_class = storage_class
        made.checksum = None
        made.__class__ = cls
        entry: Metadata = made
        return entry

    def __reduce__(self) -> tuple[Any, ...]:
        return Metadata, tuple(_plain(getattr(self, name)) for name in self.__slots__)


_DETAILS = (
    "content_type",
    "content_encoding",
    "content_language",
    "content_disposition",
    "cache_control",
    "expires",
    "storage_class",
)
_details = attrgetter(*_DETAILS, "tags", "checksum")
_NOTHING = (None,) * (len(_DETAILS) + 2)


class _Filled:
    """The fields of :class:`Metadata`, which can be set; equal slots let it become one."""

    __slots__ = Metadata.__slots__


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, MappingProxyType) else value
