"""The object resource of the JSON API, to metadata and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from calque.errors import Unexpected, Unsupported
from calque.operator.http.told_sizes import count_of
from calque.operator.options import WriteOptions
from calque.values import Checksum, Metadata

EXPIRES = "calque-expires"
"""GCS keeps no Expires header; it travels as user metadata under this name."""

MARK = "calque-request"
"""The mark of a conditional request; see ``marker``."""


_TEXTS = (
    "contentType",
    "contentEncoding",
    "contentLanguage",
    "contentDisposition",
    "cacheControl",
    "storageClass",
    "crc32c",
)


def metadata_of(resource: Mapping[str, Any], path: str) -> Metadata:
    """What calque knows of an object, from its resource."""
    try:
        generation = str(count_of(resource["generation"]))
        size = count_of(resource.get("size", 0))
        updated = _moment(resource.get("updated"))
        own = (resource.get("metadata") or {}).items()
        user = {name: value for name, value in own if value is not None}
        crc = resource.get("crc32c")
        _refuse_other_than_text(user.values())
        _refuse_other_than_text(resource.get(key) for key in _TEXTS)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise Unexpected(f"GCS described {path!r} in a way that cannot be read") from error
    user.pop(MARK, None)
    return Metadata(
        path=path,
        size=size,
        is_dir=path.endswith("/"),
        etag=generation,
        version=generation,
        last_modified=updated,
        content_type=resource.get("contentType"),
        content_encoding=resource.get("contentEncoding"),
        content_language=resource.get("contentLanguage"),
        content_disposition=resource.get("contentDisposition"),
        cache_control=resource.get("cacheControl"),
        expires=user.pop(EXPIRES, None),
        user=user,
        storage_class=resource.get("storageClass"),
        checksum=Checksum("crc32c", crc) if crc else None,
    )


def body_of(described: WriteOptions | Metadata) -> dict[str, Any]:
    """The writable fields of a resource; what is None is left out."""
    user = dict(described.user)
    if described.expires is not None:
        user[EXPIRES] = described.expires
    fields = {
        "contentType": described.content_type,
        "contentEncoding": described.content_encoding,
        "contentLanguage": described.content_language,
        "contentDisposition": described.content_disposition,
        "cacheControl": described.cache_control,
        "storageClass": described.storage_class,
        "metadata": user or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def refuse_tags(tags: Mapping[str, str] | None) -> None:
    if tags:
        raise Unsupported(
            "GCS objects have no tags", hint="Leave them out; copies take carry_tags=False."
        )


def _refuse_other_than_text(values: Iterable[Any]) -> None:
    for value in values:
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{value!r} is no text")


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
