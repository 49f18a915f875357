"""Copies in parts that were begun and neither committed nor aborted."""

from __future__ import annotations

from collections.abc import Iterator

from calque.operator import paths
from calque.operator.service import Leftover
from calque.operator.services.memory.client import Client


def list_leftovers(client: Client, prefix: str) -> Iterator[Leftover]:
    """All unfinished uploads under a prefix: a store has none but calque's own."""
    start = client.key(prefix)
    found = client.send("list", prefix, lambda: client.store.uploads(start))
    for upload, begun in found:
        path = paths.relative(client.config.root, begun.key)
        size = sum(len(data) for data in begun.parts.values())
        yield Leftover(client.location(path), "multipart upload", upload, begun.started, size)


def remove_leftover(client: Client, leftover: Leftover) -> None:
    """Drop the upload; one that is gone already is no error."""
    client.send("abort", leftover.location, lambda: client.store.drop(leftover.id))
