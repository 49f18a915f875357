"""List objects by their plain names.

The satellite lists in the order of encrypted names, which says nothing of the plain order. So a
listing in key order walks the tree: it takes one level, decrypts and sorts it, and descends.
A directory sorts as its name with the ``/``, which makes the whole walk the byte order of the
keys. Memory is one level of each directory on the way down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.access import Located
from calque.store.uplink.keys import SecretKey
from calque.store.uplink.objects import ObjectInfo, PrefixInfo, bare_info, object_info
from calque.store.uplink.paths import child_key, decrypt_component
from calque.store.uplink.session import Session
from calque.store.uplink.utf8 import encode_utf8


@dataclass(frozen=True, slots=True)
class _Level:
    """What lies directly below a prefix: the prefix in both forms, and the key below it."""

    plain: str
    encrypted: bytes
    key: SecretKey


@dataclass(frozen=True, slots=True)
class _Entry:
    """A child of a level: an object, or a level below it."""

    key: str
    item: pb.ObjectListItem
    path_key: SecretKey


def list_objects(
    session: Session,
    bucket: str,
    prefix: str = "",
    *,
    start_after: str = "",
    recursive: bool = True,
    with_metadata: bool = False,
) -> Iterator[ObjectInfo | PrefixInfo]:
    """Objects whose key starts with ``prefix``, in the byte order of keys, after ``start_after``.

    Not recursive: keys are cut after the next ``/`` that follows the prefix and appear once, as
    :class:`PrefixInfo`. Metadata is decrypted only when asked for.
    """
    parent = prefix[: prefix.rfind("/") + 1]
    path = session.access.below(bucket, parent)
    level = _Level(parent, path.encrypted, path.key)
    walk = _Walk(session, bucket, encode_utf8(start_after, "a key"), recursive, with_metadata)
    return walk.below(level, prefix)


class _Walk:
    """A listing under way."""

    def __init__(
        self,
        session: Session,
        bucket: str,
        start_after: bytes,
        recursive: bool,
        with_metadata: bool,
    ) -> None:
        self._session = session
        self._bucket = bucket
        self._start_after = start_after
        self._recursive = recursive
        self._with_metadata = with_metadata

    def below(self, level: _Level, prefix: str) -> Iterator[ObjectInfo | PrefixInfo]:
        """The entries of a level that start with a prefix, and what lies below them."""
        # A key may have a thousand components: more levels than Python may have calls.
        way = [(level, self._sort_entries(level, prefix))]
        while way:
            level, entries = way[-1]
            entry = next(entries, None)
            if entry is None:
                way.pop()
            elif entry.item.is_prefix and self._recursive:
                if self._may_hold_later(entry.key):
                    deeper = self._descend(entry, level)
                    way.append((deeper, self._sort_entries(deeper, entry.key)))
            elif entry.key.encode() > self._start_after:
                yield self._info_of(entry, level)

    def _sort_entries(self, level: _Level, prefix: str) -> Iterator[_Entry]:
        entries = [entry for entry in self._entries(level) if entry.key.startswith(prefix)]
        return iter(sorted(entries, key=lambda entry: entry.key.encode()))

    def _may_hold_later(self, directory: str) -> bool:
        start = directory.encode()
        return start > self._start_after or self._start_after.startswith(start)

    def _entries(self, level: _Level) -> Iterator[_Entry]:
        for item in _list_items(self._session, self._bucket, level.encrypted):
            name = decrypt_component(level.key, item.encrypted_object_key.rstrip(b"/"))
            suffix = "/" if item.is_prefix else ""
            yield _Entry(level.plain + name + suffix, item, child_key(level.key, name))

    def _descend(self, entry: _Entry, level: _Level) -> _Level:
        encrypted = level.encrypted + entry.item.encrypted_object_key.rstrip(b"/") + b"/"
        return _Level(entry.key, encrypted, entry.path_key)

    def _info_of(self, entry: _Entry, level: _Level) -> ObjectInfo | PrefixInfo:
        if entry.item.is_prefix:
            return PrefixInfo(self._bucket, entry.key)
        if not self._with_metadata:
            return bare_info(entry.item.object, self._bucket, entry.key)
        encrypted = level.encrypted + entry.item.encrypted_object_key
        located = Located(self._bucket, entry.key, encrypted, entry.path_key)
        return object_info(entry.item.object, located)


def _list_items(
    session: Session, bucket: str, encrypted_prefix: bytes
) -> Iterator[pb.ObjectListItem]:
    cursor = b""
    while True:
        page = session.metainfo.list_objects(
            pb.ObjectListRequest(
                header=session.header,
                bucket=bucket,
                encrypted_prefix=encrypted_prefix,
                encrypted_cursor=cursor,
                limit=session.settings.list_page,
            )
        )
        yield from page.items
        if not page.more:
            return
        cursor = page.items[-1].encrypted_object_key
