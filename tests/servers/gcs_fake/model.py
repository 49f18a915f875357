"""Buckets, objects and their generations, in memory."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import google_crc32c

from tests.servers.gcs_fake.replies import ApiError, invalid

WRITABLE = (
    "contentType",
    "contentEncoding",
    "contentLanguage",
    "contentDisposition",
    "cacheControl",
    "customTime",
    "metadata",
)
CLASSES = ("STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE", "MULTI_REGIONAL", "REGIONAL")


def crc32c_of(data: bytes) -> str:
    """The checksum as the service writes it: big-endian, base64."""
    return base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()


def md5_of(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def stamp(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class Stored:
    """One generation of an object."""

    bucket: str
    name: str
    data: bytes
    generation: int
    created: float
    storage_class: str
    fields: dict[str, Any]
    metageneration: int = 1
    updated: float = 0.0
    deleted: float | None = None
    components: int | None = None
    crc32c: str = field(init=False)
    md5: str = field(init=False)

    def __post_init__(self) -> None:
        self.crc32c, self.md5 = crc32c_of(self.data), md5_of(self.data)

    @property
    def etag(self) -> str:
        seed = f"{self.generation}/{self.metageneration}".encode()
        return base64.b64encode(seed).decode()

    def resource(self, base: str) -> dict[str, Any]:
        """The object resource, numbers as strings where the service sends strings."""
        name = quote(self.name, safe="")
        document: dict[str, Any] = {
            "kind": "storage#object",
            "id": f"{self.bucket}/{self.name}/{self.generation}",
            "selfLink": f"{base}/storage/v1/b/{self.bucket}/o/{name}",
            "mediaLink": f"{base}/download/storage/v1/b/{self.bucket}/o/{name}"
            f"?generation={self.generation}&alt=media",
            "name": self.name,
            "bucket": self.bucket,
            "generation": str(self.generation),
            "metageneration": str(self.metageneration),
            "storageClass": self.storage_class,
            "size": str(len(self.data)),
            "crc32c": self.crc32c,
            "etag": self.etag,
            "timeCreated": stamp(self.created),
            "updated": stamp(self.updated or self.created),
            **self.fields,
        }
        if self.components is None:
            document["md5Hash"] = self.md5
        else:
            document["componentCount"] = self.components
        if self.deleted is not None:
            document["timeDeleted"] = stamp(self.deleted)
        return document


@dataclass(slots=True)
class Bucket:
    """A bucket: its location and class decide whether a rewrite needs several calls."""

    name: str
    location: str = "US"
    storage_class: str = "STANDARD"
    versioning: bool = False
    metageneration: int = 1
    live: dict[str, Stored] = field(default_factory=dict)
    archived: dict[str, list[Stored]] = field(default_factory=dict)

    def resource(self) -> dict[str, Any]:
        return {
            "kind": "storage#bucket",
            "id": self.name,
            "name": self.name,
            "location": self.location,
            "storageClass": self.storage_class,
            "versioning": {"enabled": self.versioning},
            "metageneration": str(self.metageneration),
            "etag": base64.b64encode(str(self.metageneration).encode()).decode(),
        }

    def find(self, name: str, generation: int | None) -> Stored | None:
        """The live object, or one generation of it."""
        current = self.live.get(name)
        if generation is None or (current is not None and current.generation == generation):
            return current
        past = self.archived.get(name, ())
        return next((one for one in past if one.generation == generation), None)

    def replace(self, stored: Stored, now: float) -> None:
        """Make it the live generation; the one before is archived or gone."""
        self.retire(stored.name, now)
        self.live[stored.name] = stored

    def retire(self, name: str, now: float) -> None:
        old = self.live.pop(name, None)
        if old is not None and self.versioning:
            old.deleted = now
            self.archived.setdefault(name, []).append(old)

    def erase(self, name: str, generation: int) -> None:
        """Remove one generation for good."""
        current = self.live.get(name)
        if current is not None and current.generation == generation:
            del self.live[name]
        kept = [one for one in self.archived.get(name, []) if one.generation != generation]
        self.archived[name] = kept


@dataclass(slots=True)
class Journal:
    """The requests that came in, as ``"METHOD verb"`` words for counting."""

    entries: list[str] = field(default_factory=list)

    def count(self, word: str) -> int:
        return sum(word in entry for entry in self.entries)

    def clear(self) -> None:
        self.entries.clear()


@dataclass(slots=True)
class World:
    """Everything the fake holds. ``now`` may be moved forward to age tokens and sessions."""

    base: str = ""
    now: Callable[[], float] = time.time
    rewrite_bytes: int = 1024 * 1024 * 1024
    """What one rewrite call moves across locations or classes when the caller sets no limit."""
    near_in_one_call: bool = True
    """False: even a copy within one location and class goes by steps, as between two keys."""
    buckets: dict[str, Bucket] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    journal: Journal = field(default_factory=Journal)
    last_generation: int = 0

    def next_generation(self) -> int:
        self.last_generation = max(self.last_generation + 1, int(self.now() * 1_000_000))
        return self.last_generation

    def bucket(self, name: str) -> Bucket:
        found = self.buckets.get(name)
        if found is None:
            raise ApiError(404, "notFound", "The specified bucket does not exist.")
        return found

    def object(self, bucket: str, name: str, generation: int | None = None) -> Stored:
        found = self.bucket(bucket).find(name, generation)
        if found is None:
            tail = f"#{generation}" if generation is not None else ""
            raise ApiError(404, "notFound", f"No such object: {bucket}/{name}{tail}")
        return found

    def store(
        self,
        bucket: Bucket,
        name: str,
        data: bytes,
        body: dict[str, Any],
        components: int | None = None,
    ) -> Stored:
        """A new live generation; the caller has checked the preconditions."""
        check_name(name)
        made = Stored(
            bucket=bucket.name,
            name=name,
            data=data,
            generation=self.next_generation(),
            created=self.now(),
            storage_class=class_of(body, bucket),
            fields=fields_of(body),
            components=components,
        )
        bucket.replace(made, self.now())
        return made


def class_of(body: dict[str, Any], bucket: Bucket) -> str:
    wanted = str(body.get("storageClass") or bucket.storage_class)
    if wanted not in CLASSES:
        raise invalid(f"Invalid argument: storageClass {wanted}")
    return wanted


def fields_of(body: dict[str, Any]) -> dict[str, Any]:
    kept = {name: body[name] for name in WRITABLE if body.get(name) not in (None, {})}
    metadata = kept.get("metadata", {})
    if not all(isinstance(value, str) for value in metadata.values()):
        raise invalid("Invalid value for metadata: values must be strings", "metadata")
    return kept


def check_name(name: str) -> None:
    """Object names: 1 to 1,024 bytes, no line breaks, not ``.`` or ``..``."""
    size = len(name.encode())
    if not 1 <= size <= 1024:
        raise invalid(f"The maximum object length is 1024 characters, but got a name with {size}")
    if name in (".", "..") or "\r" in name or "\n" in name:
        raise invalid("Invalid object name")
    if name.startswith(".well-known/acme-challenge/"):
        raise invalid("Invalid object name")
