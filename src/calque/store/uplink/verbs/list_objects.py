"""List objects by their plain names.

The satellite lists in the order of encrypted names, which says nothing of the plain order. So a
listing in key order walks the tree: it takes one level, decrypted and sorted (``levels``), and
descends. A directory sorts as its name with the ``/``, which makes the whole walk the byte order
of the keys.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.levels import Directory, Entry, Level, sort_items
from calque.store.uplink.objects import ObjectInfo, PrefixInfo, bare_info, object_info
from calque.store.uplink.session import Session
from calque.store.uplink.utf8 import encode_utf8


def list_objects(
    session: Session,
    bucket: str,
    prefix: str = "",
    *,
    start_after: str = "",
    recursive: bool = True,
    with_metadata: bool = False,
    max_age: float = 0.0,
) -> Iterator[ObjectInfo | PrefixInfo]:
    """Objects whose key starts with ``prefix``, in the byte order of keys, after ``start_after``.

    Not recursive: keys are cut after the next ``/`` that follows the prefix and appear once, as
    :class:`PrefixInfo`. Metadata is decrypted only when asked for. A level is read again when
    anything in the project has changed since, or with ``max_age`` when it is so many seconds old:
    so many pages of a large level cost one reading, also while others write.
    """
    parent = prefix[: prefix.rfind("/") + 1]
    path = session.access.below(bucket, parent)
    walk = _Walk(
        session, bucket, encode_utf8(start_after, "a key"), recursive, with_metadata, max_age
    )
    return walk.below(Directory(parent, path.encrypted, path.key), prefix)


class _Walk:
    """A listing under way."""

    def __init__(
        self,
        session: Session,
        bucket: str,
        start_after: bytes,
        recursive: bool,
        with_metadata: bool,
        max_age: float,
    ) -> None:
        self._session = session
        self._bucket = bucket
        self._start_after = start_after
        self._recursive = recursive
        self._with_metadata = with_metadata
        self._max_age = max_age

    def below(self, directory: Directory, prefix: str) -> Iterator[ObjectInfo | PrefixInfo]:
        """The entries of a directory that start with a prefix, and what lies below them."""
        # A key may have a thousand components: more levels than Python may have calls.
        way = [(directory, self._entries(directory, prefix))]
        while way:
            directory, entries = way[-1]
            entry = next(entries, None)
            if entry is None:
                way.pop()
            elif entry.is_directory and self._recursive:
                deeper = self._descend(entry, directory)
                way.append((deeper, self._entries(deeper, deeper.plain)))
            elif (directory.plain + entry.name).encode() > self._start_after:
                yield self._info_of(entry, directory)

    def _entries(self, directory: Directory, prefix: str) -> Iterator[Entry]:
        plain = directory.plain.encode()
        start = self._start_after
        if start > plain and not start.startswith(plain):
            return iter(())  # all keys of the directory come before it
        level = read_level(self._session, self._bucket, directory, self._max_age)
        return level.between(
            encode_utf8(prefix, "a prefix")[len(plain) :],
            start[len(plain) :] if start and start >= plain else None,
        )

    def _descend(self, entry: Entry, directory: Directory) -> Directory:
        return Directory(
            directory.plain + entry.name,
            directory.encrypted + entry.encrypted + b"/",
            directory.child(entry.name[:-1]),
        )

    def _info_of(self, entry: Entry, directory: Directory) -> ObjectInfo | PrefixInfo:
        key = directory.plain + entry.name
        if entry.is_directory:
            return PrefixInfo(self._bucket, key)
        if not self._with_metadata:
            return bare_info(entry.object(), self._bucket, key)
        encrypted = directory.encrypted + entry.encrypted
        located = Located(self._bucket, key, encrypted, directory.child(entry.name))
        return object_info(entry.object(), located)


def read_level(session: Session, bucket: str, directory: Directory, max_age: float) -> Level:
    """A directory in order: the one that is kept where it still holds, else read anew."""
    kept = session.levels.get(bucket, directory.encrypted)
    if kept is not None and time.monotonic() - kept.read_at < max_age:
        return kept
    request = pb.ObjectListRequest(
        header=session.header,
        bucket=bucket,
        encrypted_prefix=directory.encrypted,
        encrypted_cursor=b"",
        limit=session.settings.list_page,
        known_mark=kept.mark if kept else b"",
    )
    page = session.metainfo.list_objects(request)
    if page.unchanged and kept is not None:
        return kept
    # The first page's mark: what changes while the others are read makes the level be read again.
    items, mark = list(page.items), page.mark
    request.known_mark = b""
    while page.more:
        request.encrypted_cursor = page.items[-1].encrypted_object_key
        page = session.metainfo.list_objects(request)
        items.extend(page.items)
    level = sort_items(directory, items, mark)
    session.levels.keep(bucket, directory.encrypted, level)
    return level
