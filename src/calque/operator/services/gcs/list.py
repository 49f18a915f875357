"""Objects of a bucket in key order, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from calque.errors import Unexpected
from calque.operator.services.gcs.client import Client
from calque.operator.services.gcs.resource import metadata_of
from calque.operator.services.listing import Page, fetch_pages
from calque.values import Metadata

PAGE = 1000
"""What one request lists at most; the service sends no more."""

_FIELDS = (
    "nextPageToken,prefixes,items(name,size,generation,updated,storageClass,crc32c,"
    "contentType,contentEncoding,contentLanguage,contentDisposition,cacheControl,metadata)"
)


def list_objects(
    client: Client, prefix: str, *, start_after: str, recursive: bool
) -> Iterator[Metadata]:
    """Entries whose key begins with a prefix, after a key."""
    query = {
        "delimiter": None if recursive else "/",
        "startOffset": client.key(start_after) if start_after else None,
    }
    for entries in _fetch(client, prefix, query):
        # startOffset includes its own key, and a folder that begins before it.
        yield from (entry for entry in entries if entry.path > start_after)


def list_versions(client: Client, prefix: str) -> Iterator[Metadata]:
    """GCS lists the oldest generation of a key first, so those of one key are turned round."""
    pages = _fetch(client, prefix, {"versions": "true"})
    generations = (
        entry
        for entries in pages
        for entry in sorted(entries, key=lambda entry: (entry.path, int(entry.version or 0)))
    )
    # One key's generations may span pages: they are grouped across them.
    for _, of_one_key in groupby(generations, key=lambda entry: entry.path):
        yield from reversed(list(of_one_key))


def _fetch(
    client: Client, prefix: str, query: Mapping[str, str | None]
) -> Iterator[Sequence[Metadata]]:
    def fetch(token: str | None) -> Page:
        page = client.send(
            "list",
            prefix,
            "GET",
            {
                "prefix": client.key(prefix) or None,
                **query,
                "pageToken": token,
                "maxResults": PAGE,
                "fields": _FIELDS,
            },
            listed=True,
        )
        token = page.get("nextPageToken")
        return _entries(client, page), str(token) if token else None

    return fetch_pages(client.location(prefix), fetch)


def _entries(client: Client, page: Mapping[str, Any]) -> Sequence[Metadata]:
    root = client.link.config.root
    cut = len(root) + 1 if root else 0
    try:
        found = [metadata_of(item, _name(item["name"])[cut:]) for item in page.get("items", ())]
        folders = page.get("prefixes", ())
        found += [Metadata(path=_name(folder)[cut:], is_dir=True) for folder in folders]
    except (KeyError, TypeError) as error:
        raise Unexpected(f"GCS lists {client.location('')} in a way that cannot be read") from error
    # The service sends objects and folders apart; callers expect one order.
    found.sort(key=lambda entry: entry.path)
    return found


def _name(told: Any) -> str:
    if not isinstance(told, str):
        raise TypeError(f"{told!r} names no object")
    return told
