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
from calque.operator.services.carry import metadata_to_carry
from calque.operator.services.memory.client import Client
from calque.operator.services.memory.store import Condition, Stored
from calque.values import GIB, ByteRange, Metadata, PartLimits, PartPlan

LIMITS = PartLimits(smallest=1, largest=5 * GIB, most=10_000)


@dataclass(frozen=True, slots=True)
class MemoryCopy:
    """The verbs of one copy, for the one-shot and for the multipart driver."""

    origin: Client
    into: Client
    source: Metadata
    target: str
    options: CopyOptions

    @property
    def _condition(self) -> Condition:
        return Condition(self.options.if_not_exists, self.options.if_match)

    @property
    def _target_key(self) -> str:
        return self.into.key(self.target)

    def _get_source(self) -> Stored:
        key = self.origin.key(self.source.path)
        return self.into.store.get_pinned(key, self.source.etag, self.source.version)

    def _template(self) -> Metadata:
        tags = self.source.tags if self.options.carry_tags else None
        carried = metadata_to_carry(self.source, self.options)
        return replace(carried, path=self._target_key, tags=tags)

    def copy_once(self) -> Metadata:
        store = self.into.store

        def request() -> Metadata:
            # Bytes never change, so they may be taken outside of the store's lock.
            data = self._get_source().data
            return store.put(self._target_key, self._template(), data, self._condition)

        return self._describe(self.into.send("copy", self.target, request))

    def initiate(self) -> str:
        store = self.into.store
        return self.into.send(
            "initiate", self.target, lambda: store.begin(self._target_key, self._template())
        )

    def copy_part(self, upload: str, number: int, span: ByteRange) -> Part:
        store = self.into.store

        def request() -> Part:
            data = self._get_source().data[span.offset : span.last + 1]
            return store.put_part(upload, number, data)

        return self.into.send("copy_part", self.target, request)

    def list_parts(self, upload: str) -> Mapping[int, Part]:
        store = self.into.store
        return self.into.send("list_parts", self.target, lambda: store.parts(upload))

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        store = self.into.store
        made = self.into.send(
            "complete",
            self.target,
            lambda: store.complete(upload, list(parts), self._condition),
            idempotent=False,
            slow=True,
        )
        return self._describe(made)

    def find_committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        store = self.into.store
        made = self.into.send("stat", self.target, lambda: store.find_made(upload))
        return None if made is None else self._describe(made)

    def abort(self, upload: str) -> None:
        store = self.into.store
        self.into.send("abort", self.target, lambda: store.drop(upload))

    def _describe(self, metadata: Metadata) -> Metadata:
        return replace(metadata, path=self.target)


def make_driver(verbs: MemoryCopy, state: Mapping[str, Any] | None = None) -> CopyDriver:
    """The driver of a copy; with a state, of the earlier copy that it was kept of."""
    size, options, config = verbs.source.size, verbs.options, verbs.origin.config
    if state is None:
        is_one_request = size <= config.threshold
    else:
        is_one_request = state.get("driver") == "one-shot"
    if is_one_request:
        return OneShotDriver(verbs, size)
    if state is not None:
        return MultipartDriver.resume(verbs, state, concurrent=options.concurrent, size=size)
    plan = PartPlan.make(size, options.chunk or config.part_size, LIMITS)
    return MultipartDriver(verbs, plan, concurrent=options.concurrent)
