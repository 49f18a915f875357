"""What replies say: headers and small XML documents read into values.

S3's documents are flat, so leaves and repeated blocks are read directly. Entities are resolved here
and nothing else is, so a hostile document can expand into nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.utils import parsedate_to_datetime
from xml.etree import ElementTree

from calque.errors import Unexpected
from calque.values import Checksum, Metadata
from calque.values.metadata import EMPTY

_LEAF = re.compile(rb"<([A-Za-z0-9]+)(?:\s[^<>]*)?(?:/>|>([^<]*)</\1\s*>)")
_ENTITY = re.compile(r"&(#[xX][0-9a-fA-F]{1,6}|#[0-9]{1,7}|lt|gt|amp|quot|apos);")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
"""XML's own; those of HTML mean other characters."""
_USER = "x-amz-meta-"
CHECKSUMS = ("crc64nvme", "crc32c", "crc32", "sha256", "sha1")
FULL_OBJECT = "FULL_OBJECT"


def leaves(document: bytes) -> dict[str, str]:
    """The text of each leaf element by its name; the first of each name."""
    found: dict[str, str] = {}
    for name, text in _LEAF.findall(document):
        found.setdefault(name.decode(), text_of(text))
    return found


def blocks(document: bytes, name: str) -> Iterator[bytes]:
    """The content of each element of a name, for elements that repeat."""
    tag = name.encode()
    pattern = re.compile(rb"<" + tag + rb"(?:\s[^<>]*)?>(.*?)</" + tag + rb"\s*>", re.DOTALL)
    return (match[1] for match in pattern.finditer(document))


def parse_document(document: bytes, root: str, what: str) -> ElementTree.Element:
    """Any document by a real parser: elements in any order, with prefixes, attributes or CDATA.

    Unexpected where it is another one, or none: a page that a proxy sends with 200 has no tags in
    it, and no objects, but proves that there are none as little.
    """
    if b"<!DOCTYPE" in document or b"<!ENTITY" in document:
        raise Unexpected(f"the reply to {what} defines entities, which S3 never does")
    try:
        tree = ElementTree.fromstring(document)
    except ElementTree.ParseError as error:
        raise Unexpected(f"the reply to {what} cannot be read", retryable=True) from error
    if local_name(tree) != root:
        raise Unexpected(f"the reply to {what} is none")
    return tree


def local_name(element: ElementTree.Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def text_of(text: bytes) -> str:
    """The text of an element."""
    decoded = text.decode("utf-8", "replace")
    return _ENTITY.sub(_resolve_entity, decoded) if "&" in decoded else decoded


def _resolve_entity(entity: re.Match[str]) -> str:
    name = entity[1]
    if name[0] != "#":
        return _NAMED[name]
    number = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    # Halves of a pair, and numbers beyond the last, are no characters in any text.
    known = number < 0xD800 or 0xE000 <= number <= 0x10FFFF
    return chr(number) if known else "\N{REPLACEMENT CHARACTER}"


def bare_etag(etag: str | None) -> str | None:
    """An ETag without its quotes; None for an empty one."""
    return etag.strip().strip('"') or None if etag else None


def quoted_etag(etag: str) -> str:
    """An ETag as conditions want it."""
    return etag if etag == "*" or etag.startswith(('"', "W/")) else f'"{etag}"'


def moment(text: str | None) -> datetime | None:
    """A time of an XML document (ISO) or of a header (RFC 1123); None where it is neither."""
    if not text:
        return None
    try:
        if text[:4].isdigit():
            return datetime.fromisoformat(text)
        return parsedate_to_datetime(text).astimezone(UTC)
    except ValueError:
        return None


def checksum_of(headers: Mapping[str, str]) -> Checksum | None:
    """The first checksum of the whole object."""
    return next(checksums_of(headers), None)


def checksums_of(headers: Mapping[str, str]) -> Iterator[Checksum]:
    """Every checksum of the whole object; those made of parts' checksums say nothing of bytes."""
    kind = headers.get("x-amz-checksum-type")
    for algorithm in CHECKSUMS:
        value = headers.get(f"x-amz-checksum-{algorithm}")
        if value and "-" not in value and kind in (None, FULL_OBJECT):
            yield Checksum(algorithm, value)


def checksum_in(fields: Mapping[str, str]) -> Checksum | None:
    """The same, out of an XML document."""
    named = {
        f"x-amz-checksum-{algorithm}": fields[f"Checksum{algorithm.upper()}"]
        for algorithm in CHECKSUMS
        if f"Checksum{algorithm.upper()}" in fields
    }
    if "ChecksumType" in fields:
        named["x-amz-checksum-type"] = fields["ChecksumType"]
    return checksum_of(named)


def metadata_of(path: str, headers: Mapping[str, str]) -> Metadata:
    """What the headers of a HEAD or GET say of an object."""
    user = {
        name[len(_USER) :]: _user_value(value)
        for name, value in headers.items()
        if name.startswith(_USER)
    }
    return Metadata(
        path=path,
        size=int(headers.get("content-length") or 0),
        is_dir=path.endswith("/"),
        etag=bare_etag(headers.get("etag")),
        version=version_of(headers),
        last_modified=moment(headers.get("last-modified")),
        content_type=headers.get("content-type"),
        content_encoding=headers.get("content-encoding") or None,
        content_language=headers.get("content-language"),
        content_disposition=headers.get("content-disposition"),
        cache_control=headers.get("cache-control"),
        expires=headers.get("expires"),
        user=user or EMPTY,
        tags=None,
        storage_class=headers.get("x-amz-storage-class"),
        checksum=checksum_of(headers),
    )


def _user_value(value: str) -> str:
    """Amazon returns what is not ASCII as an encoded word of RFC 2047."""
    if not value.startswith("=?"):
        return value
    try:
        return str(make_header(decode_header(value)))
    except (LookupError, ValueError, HeaderParseError):
        return value


def version_of(headers: Mapping[str, str]) -> str | None:
    """The version an object has in a versioned bucket; ``null`` is what it has in any other."""
    version = headers.get("x-amz-version-id")
    return None if version in (None, "", "null") else version
