"""Objects of a store in key order, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calque.operator.services.memory.client import Client
from calque.values import Metadata


def list_objects(
    client: Client, prefix: str, *, start_after: str, recursive: bool
) -> Iterator[Metadata]:
    """Entries whose key begins with a prefix, after a key.

    In pages, as servers list: what changes meanwhile shows or does not, as it would there.
    """
    after, last_folder = start_after, ""
    while True:
        page = _fetch(client, prefix, after)
        for entry in page:
            # The last entry seen, not the last one shown: a folder shows once for many.
            after = entry.path
            folder = None if recursive else _folder(prefix, entry.path)
            if folder is None:
                yield entry
            elif folder != last_folder and folder > start_after:
                last_folder = folder
                yield Metadata(path=folder, is_dir=True)
        if len(page) < client.config.page_size:
            return


def list_versions(client: Client, prefix: str) -> Iterator[Metadata]:
    """Every version under a prefix: keys in order, each with its newest version first."""
    start = client.key(prefix)
    found = client.send("list", prefix, lambda: client.store.history(start))
    return (client.localize(stored) for stored in found)


def _fetch(client: Client, prefix: str, after: str) -> Sequence[Metadata]:
    start, last = client.key(prefix), client.key(after) if after else ""
    most = client.config.page_size
    found = client.send("list", prefix, lambda: client.store.page(start, last, most))
    return [client.localize(stored) for stored in found]


def _folder(prefix: str, path: str) -> str | None:
    """The directory below a prefix that a path lies in; None where it lies in none."""
    rest = path[len(prefix) :]
    name, slash, _ = rest.partition("/")
    return prefix + name + "/" if slash else None
