"""A copy between services that cannot copy between themselves: bytes pass through the client."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from calque.errors import Aborted, CalqueError, IntegrityError, InvalidInput, Unsupported
from calque.operator.options import CopyOptions, ReadOptions, WriteOptions
from calque.operator.service import Service
from calque.values import ByteRange, Metadata

_REOPENED_AT_MOST = 5
_AHEAD = 2
"""Chunks that may be read before the caller takes the step that reports them."""


@dataclass(slots=True)
class _Pipe:
    """What the caller's thread and the writing thread share. It holds no reference to the driver,
    so that a forgotten driver is collected and its thread ends."""

    steps: queue.Queue[int] = field(default_factory=lambda: queue.Queue(_AHEAD))
    stopped: threading.Event = field(default_factory=threading.Event)
    may_commit: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    result: Metadata | None = None
    error: BaseException | None = None

    def report(self, copied: int) -> None:
        while not self.stopped.is_set():
            try:
                self.steps.put(copied, timeout=0.1)
                return
            except queue.Full:
                continue
        raise Aborted("the copy was aborted")

    def wait_for_commit(self) -> None:
        while not self.may_commit.wait(0.1):
            if self.stopped.is_set():
                raise Aborted("the copy was aborted")
        if self.stopped.is_set():
            raise Aborted("the copy was aborted")


class StreamDriver:
    """Reads the pinned source and writes the target, a step for each chunk that was passed on.

    The last chunk is held back from the target's commit until the caller asks for the end, so the
    target is invisible before. A read that breaks off goes on where it stopped, on the same bytes.
    """

    def __init__(
        self, origin: Service, source: Metadata, into: Service, target: str, options: CopyOptions
    ) -> None:
        _refuse_impossible(into, options)
        self._work = _Work(origin, source, into, target, options)
        self._pipe = _Pipe()
        self._thread: threading.Thread | None = None
        self._total = source.size
        self._reported = 0
        weakref.finalize(self, self._pipe.stopped.set)

    @property
    def total(self) -> int:
        return self._total

    def step(self) -> int | None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work.run, args=(self._pipe,), name="calque-stream", daemon=True
            )
            self._thread.start()
        if self._reported == self._total:
            self._pipe.may_commit.set()
        return self._next()

    def _next(self) -> int | None:
        while True:
            over = self._pipe.over.is_set()
            try:
                copied = self._pipe.steps.get(timeout=0 if over else 0.05)
            except queue.Empty:
                if not over:
                    continue
                if self._pipe.error is not None:
                    raise self._pipe.error from None
                return None
            self._reported += copied
            return copied

    def abort(self) -> None:
        self._pipe.stopped.set()
        if self._thread is not None:
            self._thread.join()

    def pause(self) -> None:
        raise Unsupported("a copy through the client cannot be resumed")

    def result(self) -> Metadata:
        if self._pipe.result is None:
            raise InvalidInput("the copy is not complete and has no metadata yet")
        return self._pipe.result

    def state(self) -> Mapping[str, Any]:
        raise Unsupported("a copy through the client cannot be resumed")


@dataclass(frozen=True, slots=True)
class _Work:
    """The writing thread's share: read the source, write the target."""

    origin: Service
    source: Metadata
    into: Service
    target: str
    options: CopyOptions

    def run(self, pipe: _Pipe) -> None:
        try:
            options = write_options(self.source, self.options)
            pipe.result = self.into.write(self.target, self._chunks(pipe), options)
        except BaseException as error:
            pipe.error = error
        finally:
            pipe.over.set()

    def _chunks(self, pipe: _Pipe) -> Iterator[bytes]:
        passed = 0
        for chunk in self._read(pipe):
            passed += len(chunk)
            if passed > self.source.size:
                raise IntegrityError(f"{self._name} gave more than its {self.source.size} bytes")
            yield chunk
            pipe.report(len(chunk))
        if passed != self.source.size:
            raise IntegrityError(f"{self._name} gave {passed} of its {self.source.size} bytes")
        pipe.wait_for_commit()

    def _read(self, pipe: _Pipe) -> Iterator[bytes]:
        offset, reopened = 0, 0
        while offset < self.source.size:
            try:
                for chunk in self.origin.read(self.source.path, self._from(offset)):
                    if pipe.stopped.is_set():
                        raise Aborted("the copy was aborted")
                    offset, reopened = offset + len(chunk), 0
                    yield chunk
                return
            except CalqueError as error:
                reopened += 1
                if not error.retryable or reopened > _REOPENED_AT_MOST:
                    raise

    def _from(self, offset: int) -> ReadOptions:
        can = self.origin.capability
        return ReadOptions(
            range=ByteRange(offset, self.source.size - offset),
            if_match=self.source.pin if can.read_with_if_match else None,
            version=self.source.version if can.read_with_version else None,
        )

    @property
    def _name(self) -> str:
        return self.origin.location(self.source.path)


def _refuse_impossible(into: Service, options: CopyOptions) -> None:
    can = into.capability
    if options.if_not_exists and not can.write_with_if_not_exists:
        raise Unsupported(f"{into.scheme} has no atomic if_not_exists for writes")
    if options.if_match is not None and not can.write_with_if_match:
        raise Unsupported(f"{into.scheme} has no atomic if_match for writes")


def write_options(source: Metadata, options: CopyOptions) -> WriteOptions:
    """The options that carry a source's metadata over to a target that is written."""
    carried = source if options.carry_metadata else Metadata(path=source.path)
    return WriteOptions(
        if_not_exists=options.if_not_exists,
        if_match=options.if_match,
        content_type=carried.content_type,
        content_encoding=carried.content_encoding,
        content_language=carried.content_language,
        content_disposition=carried.content_disposition,
        cache_control=carried.cache_control,
        expires=carried.expires,
        user=carried.user,
        tags=source.tags if options.carry_tags else None,
        storage_class=source.storage_class if options.carry_class else None,
        size_hint=source.size,
        concurrent=options.concurrent,
    )
