"""Blocks that killed copies left uncommitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calque.errors import InvalidInput, PermissionDenied
from calque.operator.service import Leftover
from calque.operator.services.azblob import blocks
from calque.operator.services.azblob.client import Client
from calque.operator.services.azblob.list import list_uncommitted
from calque.operator.services.azblob.staging import Staging, get_block_list
from calque.operator.services.azblob.stat import exists


def list_leftovers(client: Client, prefix: str) -> Iterator[Leftover]:
    """Blobs that exist only as uncommitted blocks of ours.

    Blocks of ours beside a blob that exists are not looked for: nothing may be done about
    them, and the service collects them within a week. A blob that may not be looked at does not
    keep the rest from being found: its error is raised at the end.
    """
    denied = None
    for entry in list_uncommitted(client, prefix):
        # What is only staged has no size in a listing; nor have empty blobs, sorted out below.
        if entry.size or entry.is_dir:
            continue
        try:
            yield from _leftovers_of(client, entry.path)
        except PermissionDenied as error:
            denied = denied or error
    if denied is not None:
        raise denied


def _leftovers_of(client: Client, path: str) -> Sequence[Leftover]:
    sizes: dict[str, int] = {}
    for id, size in get_block_list(client, path).uncommitted:
        block = blocks.Block.read(id)
        if block is not None:
            sizes[block.write] = sizes.get(block.write, 0) + size
    # After the blocks were listed: a copy that was committed meanwhile is a blob now.
    if not sizes or exists(client, path):
        return []
    where = client.location(path)
    return [
        Leftover(where, "uncommitted blocks", write, blocks.start_of(write), total)
        for write, total in sizes.items()
    ]


def remove_leftover(client: Client, leftover: Leftover) -> None:
    """Drop the blocks where that touches nothing else; see :meth:`Staging.discard`."""
    base = client.location("")
    if not leftover.location.startswith(base) or not blocks.is_write(leftover.id):
        raise InvalidInput(f"{leftover.location} is no leftover under {base}")
    Staging(client, leftover.location[len(base) :], leftover.id).discard()
