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

        Equal to what the constructor makes, in a quarter of its time: a frozen dataclass sets each
        field by the slow way round, and listings make millions of these.
        """
        made = object.__new__(cls)
        _set_path(made, path)
        _set_size(made, size)
        _set_is_dir(made, False)
        _set_etag(made, etag)
        _set_version(made, None)
        _set_last_modified(made, last_modified)
        _set_token(made, token)
        _set_content_type(made, None)
        _set_content_encoding(made, None)
        _set_content_language(made, None)
        _set_content_disposition(made, None)
        _set_cache_control(made, None)
        _set_expires(made, None)
        _set_user(made, EMPTY)
        _set_tags(made, None)
        _set_storage_class(made, storage_class)
        _set_checksum(made, None)
        return made

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

(
    _set_path,
    _set_size,
    _set_is_dir,
    _set_etag,
    _set_version,
    _set_last_modified,
    _set_token,
    _set_content_type,
    _set_content_encoding,
    _set_content_language,
    _set_content_disposition,
    _set_cache_control,
    _set_expires,
    _set_user,
    _set_tags,
    _set_storage_class,
    _set_checksum,
) = (getattr(Metadata, name).__set__ for name in Metadata.__slots__)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, MappingProxyType) else value
