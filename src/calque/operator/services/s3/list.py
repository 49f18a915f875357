"""Pages of keys, read without a parse tree: a listing of 100,000 keys is 100 replies of 300 KB."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from heapq import merge
from urllib.parse import unquote_plus
from xml.sax.saxutils import escape

from calque.errors import Unexpected
from calque.operator.http.paging import PageGuard, borders
from calque.operator.http.told_sizes import count_of
from calque.operator.services.s3.client import Client, Request
from calque.operator.services.s3.replies import (
    blocks,
    leaves,
    local_name,
    moment,
    parse_document,
    text_of,
)
from calque.values import Metadata

_FIELDS = re.compile(
    rb"<(Key|Size|ETag|LastModified|StorageClass)>([^<]*)</|(<Contents>|</Contents>)"
)
_BETWEEN = re.compile(rb"</Contents>\s*+<(?!Contents>)")
"""Something else between two objects: Swift sorts folders in among them."""
_PREFIX = re.compile(rb"<Prefix>([^<]*)</Prefix>")
_QUOTES = (b"&quot;", b"&#34;", b'"')


@dataclass(frozen=True, slots=True)
class Page:
    """One reply: objects and directories in order, and where the next page begins."""

    objects: list[Metadata]
    folders: list[str]
    token: str | None


def list_keys(
    client: Client,
    path: str,
    prefix: str,
    *,
    after: str,
    delimiter: str,
    page_size: int,
    path_of: Callable[[str], str],
    ordered: bool,
) -> Iterator[Metadata]:
    """Every entry under a prefix after a key. ``named`` turns a key into a path.

    Where the server is said to keep the order of keys, one that does not is found out.
    """
    token: str | None = None
    last = ""
    turning = PageGuard(client.location(prefix))
    while True:
        query = [
            ("list-type", "2"),
            ("encoding-type", "url"),
            ("max-keys", str(page_size)),
            ("prefix", prefix),
        ]
        if delimiter:
            query.append(("delimiter", delimiter))
        if token is not None:
            query.append(("continuation-token", token))
        elif after:
            query.append(("start-after", after))
        answer = client.send("list", path, Request("GET", None, query=query))
        try:
            page = read_page(answer.body, path_of)
        except (ValueError, KeyError) as error:
            raise Unexpected(
                f"{client.location(prefix)}: the server lists what cannot be read: {error}"
            ) from error
        # Resuming by start_after and merging of listings both rely on the order of keys.
        for entry in _entries(page, path_of, after):
            if ordered and entry.path <= last and last:
                raise Unexpected(
                    f"{client.location(prefix)}: the server lists {entry.path!r} after {last!r}: "
                    "not in the order of keys",
                    hint="Open it with key_order=false; SeaweedFS and directory buckets need that.",
                )
            last = entry.path
            yield entry
        token = page.token
        if token is None:
            return
        turning.check(token, borders([*(entry.path for entry in page.objects), *page.folders]))


def _entries(page: Page, path_of: Callable[[str], str], after: str) -> Iterator[Metadata]:
    if not page.folders:
        yield from page.objects
        return
    folders = (
        Metadata(path=path_of(folder), is_dir=True)
        for folder in page.folders
        # Keys after ``after`` may still share its directory, which comes before it.
        if not after.startswith(folder)
    )
    yield from merge(page.objects, folders, key=lambda entry: entry.path)


def read_page(document: bytes, path_of: Callable[[str], str]) -> Page:
    """Read a page of ListObjectsV2; Unexpected where it is none, or lacks what it counts."""
    try:
        page = _scan_page(document, path_of)
    except KeyError:
        page = None  # a field that is there may be written in a way the quick one does not know
    return page if page is not None else _parse_page(document, path_of)


def _scan_page(document: bytes, path_of: Callable[[str], str]) -> Page | None:
    """A page as Amazon writes it, its objects in one row; None where it is written otherwise."""
    start = document.find(b"<Contents>")
    end = document.rfind(b"</Contents>")
    if start < 0 and b"Contents" in document:
        return None
    section = document[start:end] if start >= 0 else b""
    if _BETWEEN.search(section) is not None:
        return None
    head = document if start < 0 else document[:start] + document[end:]
    fields = leaves(head)
    decode = unquote_plus if fields.get("EncodingType") == "url" else str
    objects = _objects(section, decode, path_of)
    folders = [
        decode(text_of(prefix))
        for block in blocks(head, "CommonPrefixes")
        for prefix in _PREFIX.findall(block)
    ]
    if b"<ListBucketResult" not in head or not _is_complete(fields, objects, folders):
        return None
    return Page(objects, folders, _token(fields))


def _token(fields: Mapping[str, str]) -> str | None:
    if fields.get("IsTruncated", "").strip() != "true":
        return None
    token = fields.get("NextContinuationToken")
    if not token:
        raise Unexpected("a listing is cut off and does not say where it goes on")
    return token


def _is_complete(
    fields: Mapping[str, str], objects: Sequence[Metadata], folders: Sequence[str]
) -> bool:
    """Whether all that a page counts was found. Older Ceph leaves folders out of its count."""
    count = fields.get("KeyCount", "").strip()
    return not count or count in (str(len(objects) + len(folders)), str(len(objects)))


def _objects(
    section: bytes, decode: Callable[[str], str], path_of: Callable[[str], str]
) -> list[Metadata]:
    objects: list[Metadata] = []
    fields: dict[bytes, bytes] = {}
    for name, text, _border in _FIELDS.findall(section):
        if name:
            fields[name] = text
        elif fields:
            objects.append(_entry(fields, decode, path_of))
            fields = {}
    if fields:
        objects.append(_entry(fields, decode, path_of))
    return objects


def _entry(
    fields: dict[bytes, bytes], decode: Callable[[str], str], path_of: Callable[[str], str]
) -> Metadata:
    path = path_of(decode(text_of(fields[b"Key"])))
    etag = fields.get(b"ETag", b"")
    for quote in _QUOTES:
        if etag.startswith(quote):
            etag = etag[len(quote) : -len(quote)]
            break
    storage = fields.get(b"StorageClass")
    return Metadata(
        path=path,
        size=count_of(fields[b"Size"].strip()),
        is_dir=path.endswith("/"),
        etag=etag.decode() or None,
        last_modified=_moment(fields.get(b"LastModified", b"")),
        storage_class=storage.decode() if storage else None,
    )


@lru_cache(maxsize=4096)
def _moment(text: bytes) -> datetime | None:
    return moment(text.decode())


def _parse_page(document: bytes, path_of: Callable[[str], str]) -> Page:
    """Any page by a real parser: elements in any order, with prefixes or attributes."""
    tree = parse_document(document, "ListBucketResult", "a listing")
    fields = {local_name(child): child.text or "" for child in tree if not len(child)}
    decode = unquote_plus if fields.get("EncodingType") == "url" else str
    objects: list[Metadata] = []
    folders: list[str] = []
    for child in tree:
        texts = {local_name(leaf).encode(): (leaf.text or "") for leaf in child}
        if local_name(child) == "Contents":
            raw = {name: escape(text).encode() for name, text in texts.items()}
            objects.append(_entry(raw, decode, path_of))
        elif local_name(child) == "CommonPrefixes":
            folders += [decode(leaf.text or "") for leaf in child if local_name(leaf) == "Prefix"]
    if not _is_complete(fields, objects, folders):
        raise Unexpected(
            f"a listing counts {fields['KeyCount']} entries and has {len(objects) + len(folders)}",
            hint="Some may be missing, so none is taken. Ask whoever runs the server.",
        )
    return Page(objects, folders, _token(fields))
