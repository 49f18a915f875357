"""Content headers, user metadata and tags of the Operator, as one map of the store.

User metadata keeps its names. Headers and tags stand under names that begin with ``calque:``,
which users cannot take.
"""

from __future__ import annotations

from collections.abc import Mapping

from calque.errors import InvalidInput
from calque.operator.options import CopyOptions, WriteOptions
from calque.store.uplink.objects import ObjectInfo
from calque.values import Metadata

OWN = "calque:"
TAG = "calque:tag:"
HEADERS = (
    "content_type",
    "content_encoding",
    "content_language",
    "content_disposition",
    "cache_control",
    "expires",
)


def to_map(given: WriteOptions | Metadata) -> dict[str, str]:
    """The map that is stored beside the bytes."""
    for name in given.user:
        if name.startswith(OWN):
            raise InvalidInput(f"names of user metadata cannot begin with {OWN!r}: {name!r}")
    stored = dict(given.user)
    for header in HEADERS:
        value = getattr(given, header)
        if value is not None:
            stored[OWN + header] = value
    for name, value in (given.tags or {}).items():
        stored[TAG + name] = value
    return stored


def map_of_copy(source: Metadata, options: CopyOptions) -> Mapping[str, str] | None:
    """What a copy stores: None where everything is carried over and nothing need be said."""
    if options.carry_metadata and (options.carry_tags or not source.tags):
        return None
    stored = to_map(source)
    return {
        name: value
        for name, value in stored.items()
        if (options.carry_tags if name.startswith(TAG) else options.carry_metadata)
    }


def to_metadata(info: ObjectInfo, path: str) -> Metadata:
    """An object of the store as the Operator shows it."""
    stored = info.metadata
    tags = {name[len(TAG) :]: value for name, value in stored.items() if name.startswith(TAG)}
    return Metadata(
        path=path,
        size=info.size,
        is_dir=path.endswith("/"),
        etag=info.etag,
        last_modified=info.created,
        user={name: value for name, value in stored.items() if not name.startswith(OWN)},
        tags=tags,
        content_type=stored.get("calque:content_type"),
        content_encoding=stored.get("calque:content_encoding"),
        content_language=stored.get("calque:content_language"),
        content_disposition=stored.get("calque:content_disposition"),
        cache_control=stored.get("calque:cache_control"),
        expires=stored.get("calque:expires"),
    )
