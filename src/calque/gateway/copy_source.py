"""The object that a copy reads, as its header names it."""

from __future__ import annotations

from dataclasses import dataclass

from calque.gateway.errors import S3Error, not_implemented
from calque.gateway.target import decode


@dataclass(frozen=True, slots=True)
class CopySource:
    """A bucket and a key."""

    bucket: str
    key: str


def parse_copy_source(text: str) -> CopySource:
    """``bucket/key``, percent-encoded, with or without a slash before it."""
    path, _, query = text.partition("?")
    name, _, version = query.partition("=")
    if query and (name != "versionId" or version not in ("", "null")):
        raise not_implemented("versions of the source of a copy")
    bucket, slash, key = decode(path).removeprefix("/").partition("/")
    if not bucket or not slash or not key:
        raise S3Error(
            "InvalidArgument",
            "Copy Source must mention the source bucket and key: sourcebucket/sourcekey",
        )
    return CopySource(bucket, key)
