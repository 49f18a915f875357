"""One page of a folder in the store's own order, which costs a page however large the folder is.

The satellite orders names as they are encrypted, so pages are stable and complete but not sorted:
for one who looks into a folder of a hundred thousand. ``list_objects`` sorts, and reads all for it.
"""

from __future__ import annotations

from typing import NamedTuple

from calque.errors import InvalidInput
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.levels import Directory, sort_items
from calque.store.uplink.objects import ObjectInfo, PrefixInfo, bare_info
from calque.store.uplink.session import Session


class UnsortedPage(NamedTuple):
    """Entries of one folder, by name within the page; ``cursor`` leads on, None at the end."""

    entries: list[ObjectInfo | PrefixInfo]
    cursor: str | None


def list_page(
    session: Session, bucket: str, folder: str = "", *, cursor: str = "", limit: int = 1000
) -> UnsortedPage:
    """What lies directly in a folder (empty, or ending in ``/``), behind the cursor of a page.

    Each entry that is there throughout comes in exactly one page.
    """
    path = session.access.below(bucket, folder)
    directory = Directory(folder, path.encrypted, path.key)
    page = session.metainfo.list_objects(
        pb.ObjectListRequest(
            header=session.header,
            bucket=bucket,
            encrypted_prefix=directory.encrypted,
            encrypted_cursor=_read_cursor(cursor),
            limit=limit,
        )
    )
    level = sort_items(directory, page.items, page.mark)
    entries: list[ObjectInfo | PrefixInfo] = [
        PrefixInfo(bucket, folder + each.name)
        if each.is_directory
        else bare_info(each.object(), bucket, folder + each.name)
        for each in level.entries
    ]
    last = page.items[-1].encrypted_object_key.decode("ascii") if page.more else None
    return UnsortedPage(entries, last)


def _read_cursor(cursor: str) -> bytes:
    try:
        return cursor.encode("ascii")
    except UnicodeEncodeError as error:
        raise InvalidInput("this is no cursor of a listing", hint="Begin anew.") from error
