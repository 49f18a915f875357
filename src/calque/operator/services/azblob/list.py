"""Blobs of a container in key order, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from calque.operator.services.azblob import resource
from calque.operator.services.azblob.client import Client
from calque.operator.services.listing import Page, fetch_pages
from calque.values import Metadata

PAGE = "5000"
"""What one request lists at most; the service sends no more."""


def list_blobs(
    client: Client, prefix: str, *, start_after: str, recursive: bool
) -> Iterator[Metadata]:
    """Entries whose key begins with a prefix, after a key."""
    query = {"include": "metadata", "delimiter": "" if recursive else "/"}
    start = client.key(start_after) if start_after else ""
    for entries in _fetch(client, prefix, query, start):
        # startFrom includes its own key, and a folder that begins before it.
        yield from (entry for entry in entries if entry.path > start_after)


def list_uncommitted(client: Client, prefix: str) -> Iterator[Metadata]:
    """Blobs, and what has no blob yet but blocks; the latter have no size."""
    for entries in _fetch(client, prefix, {"include": "uncommittedblobs"}):
        yield from entries


def _fetch(
    client: Client, prefix: str, query: Mapping[str, str], start: str = ""
) -> Iterator[Sequence[Metadata]]:
    root = client.link.config.root
    cut = len(root) + 1 if root else 0

    def fetch(marker: str | None) -> Page:
        asked = {
            "restype": "container",
            "comp": "list",
            "maxresults": PAGE,
            "prefix": client.key(prefix),
            **query,
            "marker": marker or "",
            # Of the first page only: the marker of a later one says where it goes on.
            "startFrom": "" if marker else start,
        }
        sent = {name: value for name, value in asked.items() if value}
        answer = client.send("list", prefix, "GET", sent, listed=True)
        entries, following = resource.page_of(answer.body)
        return [replace(entry, path=entry.path[cut:]) for entry in entries], following

    return fetch_pages(client.location(prefix), fetch)
