"""Headers and XML of the REST API, to metadata and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import wraps
from typing import ParamSpec, TypeVar
from urllib.parse import quote, unquote, urlencode
from xml.etree import ElementTree

from calque.errors import CalqueError, InvalidInput, Unexpected
from calque.operator.http.told_sizes import count_of
from calque.operator.options import WriteOptions
from calque.operator.services.option_values import refuse_same_but_case
from calque.values import Checksum, Metadata

P = ParamSpec("P")
T = TypeVar("T")

EXPIRES = "calque_expires"
"""Azure keeps no Expires header; it travels as user metadata under this name."""
MARK = "calque_request"
"""The mark of a conditional request; see ``marker``."""
_HIDDEN = (EXPIRES, MARK)
_META = "x-ms-meta-"
_UNFIT = re.compile(r"^[0-9]|[^A-Za-z0-9_]|_(?=x[0-9a-f]{4}_)")
_ESCAPED = re.compile(r"_x(?!d[89a-f])([0-9a-f]{4})_")


def _map_unreadable(read: Callable[P, T]) -> Callable[P, T]:
    """Answers that cannot be read become Unexpected, which may be asked for again."""

    @wraps(read)
    def read_or_raise(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except (ValueError, TypeError, ElementTree.ParseError) as error:
            if isinstance(error, CalqueError):
                raise
            raise Unexpected("Azure answered what cannot be read", retryable=True) from error

    return read_or_raise


@_map_unreadable
def metadata_of(path: str, headers: Mapping[str, str]) -> Metadata:
    """What calque knows of a blob, from the answer to HEAD. Tags are asked for apart."""
    user = {
        user_name(name[len(_META) :]): value
        for name, value in headers.items()
        if name.startswith(_META)
    }
    md5 = headers.get("content-md5")
    if not headers.get("etag"):
        raise Unexpected(f"Azure described {path!r} without an etag, by which it would be pinned")
    return Metadata(
        path=path,
        size=int(headers.get("content-length") or 0),
        is_dir=path.endswith("/"),
        etag=unquote_etag(headers.get("etag")),
        last_modified=_moment(headers.get("last-modified")),
        content_type=headers.get("content-type"),
        content_encoding=headers.get("content-encoding"),
        content_language=headers.get("content-language"),
        content_disposition=headers.get("content-disposition"),
        cache_control=headers.get("cache-control"),
        expires=user.get(EXPIRES),
        user={name: value for name, value in user.items() if name not in _HIDDEN},
        tags={} if not count_of(headers.get("x-ms-tag-count") or 0) else None,
        storage_class=_own_tier(headers, "x-ms-access-tier", "x-ms-access-tier-inferred"),
        checksum=Checksum("md5", md5) if md5 else None,
    )


def mark_of(headers: Mapping[str, str]) -> str | None:
    """The mark that a blob bears."""
    return headers.get(_META + MARK)


def content_headers(described: WriteOptions | Metadata) -> dict[str, str]:
    """The ``x-ms-blob-*`` headers of Put Blob and Put Block List."""
    fields = {
        "x-ms-blob-content-type": described.content_type,
        "x-ms-blob-content-encoding": described.content_encoding,
        "x-ms-blob-content-language": described.content_language,
        "x-ms-blob-content-disposition": described.content_disposition,
        "x-ms-blob-cache-control": described.cache_control,
        "x-ms-access-tier": described.storage_class,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    for name, value in given.items():
        _refuse_unprintable(name.removeprefix("x-ms-blob-"), value)
    return given


def user_headers(described: WriteOptions | Metadata, mark: str | None = None) -> dict[str, str]:
    """User metadata as headers; InvalidInput where Azure cannot keep it."""
    own: dict[str, str] = dict(described.user)
    if described.expires is not None:
        own[EXPIRES] = described.expires
    if mark is not None:
        own[MARK] = mark
    refuse_same_but_case("Azure", own)
    for name, value in own.items():
        if not name or any(ord(character) > 0xFFFF for character in name):
            raise InvalidInput(f"Azure cannot keep metadata named {name!r}")
        _refuse_unprintable(f"metadata {name!r}", value)
    return {_META + wire_name(name): value for name, value in own.items()}


def _refuse_unprintable(what: str, value: str) -> None:
    """Headers carry printable ASCII, and lose blanks at their ends."""
    if not value.isascii() or not value.isprintable() or value != value.strip():
        raise InvalidInput(
            f"Azure cannot keep the {what} {value!r}: it must be printable ASCII without blanks "
            "at its ends",
            hint="Encode it, for example as base64.",
        )


def wire_name(name: str) -> str:
    """A metadata name as Azure takes it: an identifier, other characters as ``_x002d_``."""
    return _UNFIT.sub(lambda found: f"_x{ord(found[0]):04x}_", name)


def user_name(name: str) -> str:
    """The reverse of :func:`wire_name`."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name)


def tag_headers(tags: Mapping[str, str] | None) -> dict[str, str]:
    """Tags as one header, none where there are none."""
    return {"x-ms-tags": urlencode(dict(tags), quote_via=quote)} if tags else {}


def unquote_etag(etag: str | None) -> str | None:
    """An etag without its quotes, which HEAD sends and listings do not."""
    return etag.strip('"') if etag else None


def quote_etag(etag: str) -> str:
    """An etag as conditions want it."""
    return etag if etag == "*" or etag.startswith(('"', "W/")) else f'"{etag}"'


@_map_unreadable
def page_of(body: bytes) -> tuple[list[Metadata], str | None]:
    """A page of List Blobs, blobs and folders in one order, and the marker of the next.

    Names are whole keys.
    """
    root = _parse(body, "EnumerationResults")
    entries = [_entry_of(blob) for blob in root.iterfind("Blobs/Blob")]
    folders = [_name(folder) for folder in root.iterfind("Blobs/BlobPrefix")]
    entries += [Metadata(path=folder, is_dir=True) for folder in folders]
    # Blobs and folders come apart; callers expect one order.
    entries.sort(key=lambda entry: entry.path)
    return entries, root.findtext("NextMarker") or None


def _entry_of(blob: ElementTree.Element) -> Metadata:
    found = {item.tag: item.text or "" for item in blob.iterfind("Properties/*")}
    metadata = blob.iterfind("Metadata/*")
    user = {user_name(item.tag): item.text or "" for item in metadata}
    md5 = found.get("Content-MD5")
    key = _name(blob)
    return Metadata(
        path=key,
        size=count_of(found.get("Content-Length") or 0),
        is_dir=key.endswith("/"),
        etag=unquote_etag(found.get("Etag")),
        last_modified=_moment(found.get("Last-Modified")),
        content_type=found.get("Content-Type") or None,
        content_encoding=found.get("Content-Encoding") or None,
        content_language=found.get("Content-Language") or None,
        content_disposition=found.get("Content-Disposition") or None,
        cache_control=found.get("Cache-Control") or None,
        expires=user.get(EXPIRES),
        user={name: value for name, value in user.items() if name not in _HIDDEN},
        storage_class=_own_tier(found, "AccessTier", "AccessTierInferred"),
        checksum=Checksum("md5", md5) if md5 else None,
    )


@dataclass(frozen=True, slots=True)
class BlockList:
    """The blocks of a blob: ids as base64, with their sizes, in order."""

    committed: tuple[tuple[str, int], ...] = ()
    uncommitted: tuple[tuple[str, int], ...] = ()


@_map_unreadable
def block_list_of(body: bytes) -> BlockList:
    """What Get Block List answers."""
    root = _parse(body, "BlockList")
    return BlockList(
        tuple(_blocks(root, "CommittedBlocks/Block")),
        tuple(_blocks(root, "UncommittedBlocks/Block")),
    )


def _blocks(root: ElementTree.Element, path: str) -> Iterator[tuple[str, int]]:
    for block in root.iterfind(path):
        yield block.findtext("Name") or "", count_of(block.findtext("Size") or 0)


def block_list_body(ids: list[str]) -> bytes:
    """The body of Put Block List. ``Latest`` makes a repeat after a lost answer succeed again."""
    listed = "".join(f"<Latest>{each}</Latest>" for each in ids)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'.encode()


@_map_unreadable
def tags_of(body: bytes) -> dict[str, str]:
    """What Get Blob Tags answers."""
    found = _parse(body, "Tags").iterfind("TagSet/Tag")
    return {tag.findtext("Key") or "": tag.findtext("Value") or "" for tag in found}


def _parse(body: bytes, root: str) -> ElementTree.Element:
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body:
        raise Unexpected("Azure's answer defines entities, which it never does")
    # Azure begins its XML with a byte order mark.
    tree = ElementTree.fromstring(body.removeprefix(b"\xef\xbb\xbf"))
    # A page that a proxy sends with 200 lists nothing, which proves nothing.
    if tree.tag != root:
        raise Unexpected(f"Azure answered <{tree.tag[:40]}> where <{root}> was due")
    return tree


def _name(entry: ElementTree.Element) -> str:
    name = entry.find("Name")
    if name is None or name.text is None:
        raise Unexpected("Azure listed a blob without a name")
    # Names that XML cannot hold come percent-encoded, and say so.
    return unquote(name.text) if name.get("Encoded") == "true" else name.text


def _own_tier(found: Mapping[str, str], tier: str, inferred: str) -> str | None:
    """The tier that a blob was given; None where it only has its account's default."""
    return None if found.get(inferred, "").lower() == "true" else found.get(tier) or None


def _moment(text: str | None) -> datetime | None:
    return parsedate_to_datetime(text) if text else None
