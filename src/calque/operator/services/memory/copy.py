"""Copies inside a memory store: in one request up to the threshold, in parts above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calque.operator.drivers.multipart import MultipartDriver
from calque.operator.drivers.one_shot import OneShotDriver
from calque.operator.drivers.verbs import Part
from calque.operator.options import CopyOptions
from calque.operator.service import CopyDriver
from calque.operator.services.memory.requests import Requests
from calque.operator.services.memory.store import Condition, Stored
from calque.values import GIB, ByteRange, Metadata, PartLimits, PartPlan

LIMITS = PartLimits(smallest=1, largest=5 * GIB, most=10_000)


@dataclass(frozen=True, slots=True)
class MemoryCopy:
    """The verbs of one copy, for the one-shot and for the multipart driver."""

    requests: Requests
    source: Metadata
    source_key: str
    target: str
    target_key: str
    options: CopyOptions

    @property
    def _condition(self) -> Condition:
        return Condition(self.options.if_not_exists, self.options.if_match)

    def _pinned(self) -> Stored:
        store = self.requests.store
        return store.pinned(self.source_key, self.source.etag, self.source.version)

    def _template(self) -> Metadata:
        bare = Metadata(path=self.target_key)
        carried = self.source if self.options.carry_metadata else bare
        return replace(
            carried,
            path=self.target_key,
            tags=self.source.tags if self.options.carry_tags else None,
            storage_class=self.source.storage_class if self.options.carry_class else None,
        )

    def copy_once(self) -> Metadata:
        store = self.requests.store

        def request() -> Metadata:
            data = self._pinned().data
            return store.put(self.target_key, self._template(), data, self._condition)

        return self._named(self.requests.send("copy", self.target, request))

    def initiate(self) -> str:
        store = self.requests.store
        return self.requests.send(
            "initiate", self.target, lambda: store.begin(self.target_key, self._template())
        )

    def copy_part(self, upload: str, number: int, span: ByteRange) -> Part:
        store = self.requests.store

        def request() -> Part:
            data = self._pinned().data[span.offset : span.last + 1]
            return store.put_part(upload, number, data)

        return self.requests.send("copy_part", self.target, request)

    def list_parts(self, upload: str) -> Mapping[int, Part]:
        store = self.requests.store
        return self.requests.send("list_parts", self.target, lambda: store.parts(upload))

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        store = self.requests.store
        made = self.requests.send(
            "complete",
            self.target,
            lambda: store.complete(upload, list(parts), self._condition),
            idempotent=False,
            slow=True,
        )
        return self._named(made)

    def committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        store = self.requests.store
        made = self.requests.send("stat", self.target, lambda: store.made_by(upload))
        return None if made is None else self._named(made)

    def abort(self, upload: str) -> None:
        store = self.requests.store
        self.requests.send("abort", self.target, lambda: store.drop(upload))

    def _named(self, metadata: Metadata) -> Metadata:
        return replace(metadata, path=self.target)


def driver_of(verbs: MemoryCopy, *, threshold: int, part_size: int) -> CopyDriver:
    """The driver for a copy of this size."""
    size, options = verbs.source.size, verbs.options
    if size <= threshold:
        return OneShotDriver(verbs, size)
    plan = PartPlan.make(size, options.chunk or part_size, LIMITS)
    return MultipartDriver(verbs, plan, concurrent=options.concurrent)


def resumed_driver(verbs: MemoryCopy, state: Mapping[str, Any]) -> CopyDriver:
    """The driver of an earlier copy."""
    if state.get("driver") == "one-shot":
        return OneShotDriver(verbs, verbs.source.size)
    options = verbs.options
    return MultipartDriver.resume(
        verbs, state, concurrent=options.concurrent, size=verbs.source.size
    )
