"""The bytes of an object, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator

from calque.operator.options import ReadOptions
from calque.operator.services.memory.client import Client
from calque.values import MIB

PIECE = 1 * MIB


def read(client: Client, path: str, options: ReadOptions) -> Iterator[bytes]:
    """The bytes of a range, all of one version: they are taken in one request."""
    key, span = client.key(path), options.range

    def request() -> bytes:
        data = client.store.get_pinned(key, options.if_match, options.version).data
        end = None if span.length is None else span.offset + span.length
        return data[span.offset : end]

    data = client.send("read", path, request)
    return (data[at : at + PIECE] for at in range(0, len(data), PIECE))
