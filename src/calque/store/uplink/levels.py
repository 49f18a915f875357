"""Levels of names: what lies directly below a prefix, decrypted and in the order of plain names.

The satellite lists in the order of encrypted names, so a level has to be read as a whole before
its first name is known. To read it again for each page would make a listing in pages quadratic.
So sorted levels are kept, within bounds, beside the mark that the satellite gave with them: as long
as it gives the same one, nothing in the project has changed and the level is as it was.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.encryption.keys import SecretKey
from calque.store.uplink.encryption.paths import NameCipher, child_key
from calque.values import MIB

MOST_BYTES = 128 * MIB
_ENTRY_COST = 200
"""Bytes that an entry takes beside its name and its record."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A prefix in both forms, and the key of what lies below it."""

    plain: str
    encrypted: bytes
    key: SecretKey = field(repr=False)

    def child(self, name: str) -> SecretKey:
        """The key of an entry, for its own keys or for what lies below it."""
        return child_key(self.key, name)


@dataclass(frozen=True, slots=True)
class Entry:
    """A name of a level, which ends in ``/`` where it is a directory; else with its object."""

    name: str
    encrypted: bytes
    record: bytes

    @property
    def is_directory(self) -> bool:
        return not self.record

    def object(self) -> pb.Object:
        return pb.Object.FromString(self.record)


@dataclass(frozen=True, slots=True)
class Level:
    """The entries of a directory by the bytes of their names."""

    names: Sequence[bytes]
    entries: Sequence[Entry]
    mark: bytes
    read_at: float

    @property
    def cost(self) -> int:
        return sum(
            2 * len(each.name) + len(each.encrypted) + len(each.record) + _ENTRY_COST
            for each in self.entries
        )

    def between(self, prefix: bytes, start_after: bytes | None) -> Iterator[Entry]:
        """Entries that start with ``prefix``, from the one that leads behind ``start_after`` on."""
        first = bisect_left(self.names, prefix)
        if start_after is not None:
            first = max(first, self._place_behind(start_after))
        for number in range(first, len(self.names)):
            if not self.names[number].startswith(prefix):
                return
            yield self.entries[number]

    def _place_behind(self, name: bytes) -> int:
        place = bisect_right(self.names, name)
        before = self.names[place - 1] if place else b""
        # A directory stands before the keys in it, and may hold some that come later.
        return place - 1 if before.endswith(b"/") and name.startswith(before) else place


class LevelCache:
    """Sorted levels of one session, the least used of which go first. Safe between threads."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._levels: OrderedDict[tuple[str, bytes], tuple[Level, int]] = OrderedDict()
        self._bytes = 0

    def get(self, bucket: str, encrypted: bytes) -> Level | None:
        with self._lock:
            kept = self._levels.get((bucket, encrypted))
            if kept is None:
                return None
            self._levels.move_to_end((bucket, encrypted))
            return kept[0]

    def keep(self, bucket: str, encrypted: bytes, level: Level) -> None:
        cost = level.cost
        if cost > self._most_bytes:
            return
        with self._lock:
            _, before = self._levels.pop((bucket, encrypted), (None, 0))
            self._levels[bucket, encrypted] = (level, cost)
            self._bytes += cost - before
            while self._bytes > self._most_bytes:
                _, (_, gone) = self._levels.popitem(last=False)
                self._bytes -= gone


def sort_items(directory: Directory, items: Sequence[pb.ObjectListItem], mark: bytes) -> Level:
    """A level out of what the satellite listed; one cipher decrypts all of its names."""
    cipher = NameCipher(directory.key)
    entries = [_entry(cipher, item) for item in items]
    entries.sort(key=lambda entry: entry.name.encode())
    return Level([entry.name.encode() for entry in entries], entries, mark, time.monotonic())


def _entry(cipher: NameCipher, item: pb.ObjectListItem) -> Entry:
    encrypted = item.encrypted_object_key.rstrip(b"/")
    name = cipher.decrypt(encrypted)
    if item.is_prefix:
        return Entry(name + "/", encrypted, b"")
    return Entry(name, encrypted, item.object.SerializeToString())
