"""What is kept beside an object's bytes, as headers of S3 and as one map of the store.

User metadata, content headers and tags have the names that the store's service gives them, so that
whatever door an object came in by, the others show the same. The gateway adds entries of its own:
the ETag, a checksum, the upload it came from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qsl

from calque.gateway.body.checksums import Checksum
from calque.gateway.errors import S3Error, not_implemented
from calque.gateway.request import Headers
from calque.store.service.metadata import HEADERS, OWN, TAG
from calque.store.uplink.objects import ObjectInfo

ETAG, CHECKSUM, UPLOAD = OWN + "etag", OWN + "checksum", OWN + "upload"
SYSTEM = (ETAG, CHECKSUM)
"""What describes the bytes themselves, and follows them into every copy."""

LARGEST_USER_METADATA = 2048
MOST_TAGS = 10
_USER = "x-amz-meta-"
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
DEFAULT_TYPE = "binary/octet-stream"


def user_metadata(headers: Mapping[str, str]) -> dict[str, str]:
    """The ``x-amz-meta-*`` headers; MetadataTooLarge above 2 KiB."""
    found = {
        name[len(_USER) :]: _to_text(value)
        for name, value in headers.items()
        if name.startswith(_USER)
    }
    size = sum(len(name.encode()) + len(value.encode()) for name, value in found.items())
    if size > LARGEST_USER_METADATA:
        raise S3Error(
            "MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size"
        )
    for name in found:
        if not name or name.startswith(OWN):
            raise S3Error("InvalidArgument", "Metadata cannot have this name.")
    return found


def map_of_headers(headers: Headers) -> dict[str, str]:
    """The map of a new object, without what is known of its bytes."""
    refuse_unoffered(headers)
    stored = user_metadata(headers)
    for field in HEADERS:
        value = headers.get(field.replace("_", "-"))
        if field == "content_encoding" and value is not None:
            # How the request was sent is no property of the object.
            kept = [each.strip() for each in value.split(",")]
            value = ",".join(e for e in kept if e and e.lower() != "aws-chunked") or None
        if value is not None:
            stored[OWN + field] = _to_text(value)
    for name, value in parse_tags(headers.get("x-amz-tagging", "")).items():
        stored[TAG + name] = value
    return stored


def parse_tags(text: str) -> dict[str, str]:
    """Tags as they are written in a header: ``a=1&b=2``."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise S3Error("InvalidArgument", "The header 'x-amz-tagging' shall be encoded.") from error
    return check_tags(pairs)


def check_tags(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """InvalidTag unless there are at most ten, named once, of 128 and 256 characters at most."""
    tags = dict(pairs)
    if len(tags) != len(pairs):
        raise S3Error("InvalidTag", "Cannot provide multiple Tags with the same key")
    if len(tags) > MOST_TAGS:
        raise S3Error("InvalidTag", "Object tags cannot be greater than 10")
    for name, value in tags.items():
        if not 1 <= len(name) <= 128:
            raise S3Error("InvalidTag", "The TagKey you have provided is invalid")
        if len(value) > 256:
            raise S3Error("InvalidTag", "The TagValue you have provided is invalid")
    return tags


def tags_of(stored: Mapping[str, str]) -> dict[str, str]:
    return {name[len(TAG) :]: value for name, value in stored.items() if name.startswith(TAG)}


def with_tags(stored: Mapping[str, str], tags: Mapping[str, str]) -> dict[str, str]:
    """The map with these tags and no others."""
    kept = {name: value for name, value in stored.items() if not name.startswith(TAG)}
    return kept | {TAG + name: value for name, value in tags.items()}


def etag_of(info: ObjectInfo) -> str:
    """The ETag, quoted. An object of another door has none of S3's: the id of its contents, in a
    form that no client takes for an MD5."""
    return f'"{info.metadata.get(ETAG) or info.etag + "-1"}"'


def checksum_of(info: ObjectInfo) -> Checksum | None:
    text = info.metadata.get(CHECKSUM)
    return Checksum.parse(text) if text else None


def object_headers(info: ObjectInfo) -> dict[str, str]:
    """What a GET or HEAD tells of an object."""
    stored = info.metadata
    headers = {
        "ETag": etag_of(info),
        "Last-Modified": http_time(info),
        "Accept-Ranges": "bytes",
        "Content-Type": stored.get(OWN + "content_type") or DEFAULT_TYPE,
    }
    for field in HEADERS[1:]:
        value = stored.get(OWN + field)
        if value is not None:
            headers[field.replace("_", "-").title()] = value
    own = {name: value for name, value in stored.items() if not name.startswith(OWN)}
    shown = {_USER + name: value for name, value in own.items() if _HEADER_NAME.fullmatch(name)}
    headers |= shown
    if len(shown) < len(own):  # written by another API: names that no header can have
        headers["x-amz-missing-meta"] = str(len(own) - len(shown))
    tags = tags_of(stored)
    if tags:
        headers["x-amz-tagging-count"] = str(len(tags))
    if info.expires is not None:
        headers["x-amz-expiration"] = (
            f'expiry-date="{format_datetime(info.expires, usegmt=True)}", rule-id="expiry"'
        )
    return {name: _to_wire(value) for name, value in headers.items()}


def checksum_headers(info: ObjectInfo) -> dict[str, str]:
    """The checksum of a whole object, if one is known."""
    found = checksum_of(info)
    if found is None:
        return {}
    return {found.header: found.value, "x-amz-checksum-type": found.kind}


def checksum_fields(checksum: Checksum | None) -> dict[str, Any]:
    """The same in a document."""
    if checksum is None:
        return {}
    return {f"Checksum{checksum.algorithm}": checksum.value, "ChecksumType": checksum.kind}


def http_time(info: ObjectInfo) -> str:
    return format_datetime(info.created.replace(microsecond=0), usegmt=True)


def refuse_unoffered(headers: Headers) -> None:
    """501, by its name, for what a header asks and the store does not have."""
    if headers.get("x-amz-acl", "private") != "private":
        raise not_implemented("access control lists other than private")
    sse = headers.get("x-amz-server-side-encryption")
    if sse is not None and sse != "AES256":
        raise not_implemented("server-side encryption with keys of a key service")
    for name in headers:
        if name.startswith("x-amz-grant-"):
            raise not_implemented("grants of access control lists")
        if "server-side-encryption-customer" in name:
            raise not_implemented("server-side encryption with keys of the customer")
        if name.startswith("x-amz-object-lock-"):
            raise not_implemented("object locks")
    if "x-amz-website-redirect-location" in headers:
        raise not_implemented("redirects of websites")
    if headers.get("x-amz-storage-class", "STANDARD") != "STANDARD":
        raise S3Error("InvalidStorageClass", "The storage class you specified is not valid")


def _to_text(value: str) -> str:
    """A header's value: UTF-8 as clients send it nowadays, or else the latin-1 of old."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _to_wire(value: str) -> str:
    """As bytes of UTF-8; control characters, which other doors let in, become spaces."""
    if not value.isprintable():
        value = "".join(each if each.isprintable() else " " for each in value)
    return value if value.isascii() else value.encode("utf-8", "replace").decode("latin-1")
