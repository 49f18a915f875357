"""The objects themselves: one lock, so that every condition is atomic with its change."""

from __future__ import annotations

import base64
import bisect
import hashlib
import itertools
import threading
import uuid
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from calque.operator.drivers.verbs import Part
from calque.operator.services.memory.errors import Refused
from calque.values import Checksum, Metadata


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold of a target at the moment it is replaced."""

    if_not_exists: bool = False
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of an object: what is known of it, and its bytes."""

    metadata: Metadata
    data: bytes


@dataclass(slots=True)
class Upload:
    """A copy in parts that is not committed yet."""

    key: str
    started: datetime
    template: Metadata
    parts: dict[int, bytes] = field(default_factory=dict)


class MemoryStore:
    """Keys to versions of objects, and the uploads under way. Every method is one transaction."""

    def __init__(self, name: str, *, versions: bool) -> None:
        self.name = name
        self.versions = versions
        self._lock = threading.Lock()
        self._objects: dict[str, list[Stored]] = {}
        self._order: list[bytes] = []  # keys, kept sorted: a page of a listing is a slice
        self._uploads: dict[str, Upload] = {}
        self._committed: dict[str, Metadata] = {}  # by upload: a repeated commit finds its work
        self._numbers = itertools.count(1)

    def get(self, key: str, version: str | None = None) -> Stored:
        with self._lock:
            return self._get(key, version)

    def _get(self, key: str, version: str | None) -> Stored:
        history = self._objects.get(key)
        if not history:
            raise Refused("NoSuchKey", "there is no such object")
        if version is None:
            return history[-1]
        for stored in history:
            if stored.metadata.version == version:
                return stored
        raise Refused("NoSuchVersion", f"there is no version {version}")

    def get_pinned(self, key: str, etag: str | None, version: str | None) -> Stored:
        """The object if it is still the one that is meant."""
        stored = self.get(key, version)
        if etag is not None and stored.metadata.etag != etag:
            raise Refused("SourceChanged", "the object was replaced since it was looked at")
        return stored

    def put(self, key: str, template: Metadata, data: bytes, condition: Condition) -> Metadata:
        with self._lock:
            return self._put(key, template, data, condition)

    def _put(self, key: str, template: Metadata, data: bytes, condition: Condition) -> Metadata:
        # Under the same lock as the change, so that no other writer comes between.
        self._check(key, condition)
        metadata = replace(
            template,
            size=len(data),
            etag=hashlib.md5(data, usedforsecurity=False).hexdigest(),
            version=f"v{next(self._numbers)}" if self.versions else None,
            last_modified=datetime.now(UTC),
            checksum=Checksum("crc32", _crc32(data)),
        )
        history = self._objects.setdefault(key, [])
        if not history:
            bisect.insort(self._order, key.encode())
        # The old version goes in the same moment as the new one comes.
        if not self.versions:
            history.clear()
        history.append(Stored(metadata, data))
        return metadata

    def _check(self, key: str, condition: Condition) -> None:
        history = self._objects.get(key)
        if condition.if_not_exists and history:
            raise Refused("TargetExists", "the object exists already")
        if condition.if_match is None:
            return
        if not history or history[-1].metadata.etag != condition.if_match:
            raise Refused("TargetChanged", "the object is not the one that if_match names")

    def remove(self, key: str, if_match: str | None, version: str | None) -> None:
        with self._lock:
            if if_match is not None:
                self._check(key, Condition(if_match=if_match))
            history = self._objects.get(key, [])
            kept = [each for each in history if version and each.metadata.version != version]
            if kept:
                self._objects[key] = kept
            elif history:
                del self._objects[key]
                del self._order[bisect.bisect_left(self._order, key.encode())]

    def history(self, prefix: str) -> list[Metadata]:
        """Every version of a prefix's objects: keys in order, the newest version first."""
        start = prefix.encode()
        with self._lock:
            keys = [key.decode() for key in self._order if key.startswith(start)]
            return [each.metadata for key in keys for each in reversed(self._objects[key])]

    def page(self, prefix: str, after: str, most: int) -> list[Metadata]:
        """Up to ``most`` objects of a prefix after a key, in the byte order of their keys."""
        start = prefix.encode()
        with self._lock:
            first = bisect.bisect_left(self._order, start)
            if after:
                first = max(first, bisect.bisect_right(self._order, after.encode()))
            keys = itertools.islice(self._order, first, first + most)
            return [
                self._objects[key.decode()][-1].metadata for key in keys if key.startswith(start)
            ]

    def begin(self, key: str, template: Metadata) -> str:
        upload = uuid.uuid4().hex
        with self._lock:
            self._uploads[upload] = Upload(key, datetime.now(UTC), template)
        return upload

    def put_part(self, upload: str, number: int, data: bytes) -> Part:
        with self._lock:
            self._upload(upload).parts[number] = data
        return _part(number, data)

    def parts(self, upload: str) -> dict[int, Part]:
        with self._lock:
            held = self._upload(upload).parts
            return {number: _part(number, data) for number, data in sorted(held.items())}

    def complete(self, upload: str, parts: list[Part], condition: Condition) -> Metadata:
        with self._lock:
            begun = self._upload(upload)
            held = [begun.parts.get(part.number) for part in parts]
            for part, data in zip(parts, held, strict=True):
                if data is None or _part(part.number, data) != part:
                    raise Refused("InvalidPart", f"part {part.number} is not held as named")
            if [part.number for part in parts] != list(range(1, len(parts) + 1)):
                raise Refused("InvalidPart", "parts must be named in order, from 1")
            # Checked before anything changes: a refused commit leaves the upload as it was.
            whole = b"".join(data for data in held if data is not None)
            metadata = self._put(begun.key, begun.template, whole, condition)
            del self._uploads[upload]
            self._committed[upload] = metadata
            return metadata

    def find_made(self, upload: str) -> Metadata | None:
        with self._lock:
            return self._committed.get(upload)

    def drop(self, upload: str) -> None:
        with self._lock:
            self._uploads.pop(upload, None)

    def uploads(self, prefix: str) -> Iterator[tuple[str, Upload]]:
        with self._lock:
            # A copy, since uploads may begin and end while the caller goes through them.
            found = [each for each in self._uploads.items() if each[1].key.startswith(prefix)]
        return iter(found)

    def _upload(self, upload: str) -> Upload:
        if upload not in self._uploads:
            raise Refused("NoSuchUpload", f"there is no upload {upload}")
        return self._uploads[upload]


def _crc32(data: bytes) -> str:
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def _part(number: int, data: bytes) -> Part:
    return Part(number, hashlib.md5(data, usedforsecurity=False).hexdigest(), len(data))


class Stores:
    """The named stores of this process; a store lives as long as a service holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._named: weakref.WeakValueDictionary[str, MemoryStore] = weakref.WeakValueDictionary()

    def open(self, name: str, *, versions: bool) -> MemoryStore:
        """The store of a name; without a name, one of its own."""
        if not name:
            return MemoryStore(f"~{uuid.uuid4().hex[:8]}", versions=versions)
        # Two threads that open one name at once must get one store.
        with self._lock:
            store = self._named.get(name)
            if store is None:
                store = self._named[name] = MemoryStore(name, versions=versions)
            return store


STORES = Stores()
