"""A copy between services that cannot copy between themselves: bytes pass through the client."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from calque.errors import Aborted, IntegrityError, InvalidInput, Unsupported
from calque.operator.interruptible import join, wait_until
from calque.operator.layers.stop import Stopping
from calque.operator.options import CopyOptions, WriteOptions
from calque.operator.read import pinned_options, read_on
from calque.operator.service import Service, Tagging, WriteAgain
from calque.values import ByteRange, Metadata

NAME = "stream"
_AHEAD = 2
"""Chunks that may be read before the caller takes the step that reports them."""


class _Pipe:
    """What the caller's thread and the writing thread share. It holds no reference to the driver,
    so that a forgotten driver is collected and its thread ends."""

    def __init__(self) -> None:
        # Its lock is reentrant: a collection in the middle of a method may call stop().
        self._changed = threading.Condition()
        self._steps: deque[int] = deque()
        self._told = 0
        self._stopped = False
        self._may_commit = False
        self._over = False
        self.result: Metadata | None = None
        self.error: BaseException | None = None

    def is_stopped(self, waited: float = 0.0) -> bool:
        return self._stopped

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def report(self, passed: int) -> None:
        """Tell how many bytes have passed; waits until the caller has taken the steps before.

        What passes a second time is told once.
        """
        with self._changed:
            # Memory is bounded here: the reader never runs further ahead than this.
            self._changed.wait_for(lambda: self._stopped or len(self._steps) < _AHEAD)
            self._refuse_when_stopped()
            if passed > self._told:
                self._steps.append(passed - self._told)
                self._told = passed
            self._changed.notify_all()

    def wait_for_commit(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._may_commit)
            self._refuse_when_stopped()

    def _refuse_when_stopped(self) -> None:
        if self._stopped:
            raise Aborted("the copy was aborted")

    def let_commit(self) -> None:
        with self._changed:
            self._may_commit = True
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def take(self) -> int | None:
        """The next step; None when the writing thread has ended and all are taken."""
        with self._changed:
            wait_until(self._changed, lambda: self._over or bool(self._steps))
            if not self._steps:
                return None
            self._changed.notify_all()
            return self._steps.popleft()


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
        # A driver that was forgotten must not leave a thread that waits for its next step for ever.
        weakref.finalize(self, self._pipe.stop)

    @property
    def total(self) -> int:
        return self._total

    def step(self) -> int | None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work.run, args=(self._pipe,), name="calque-stream", daemon=True
            )
            self._thread.start()
        # Only after the last byte was told: whoever stops before has no new target.
        if self._reported == self._total:
            self._pipe.let_commit()
        copied = self._pipe.take()
        if copied is None:
            if self._pipe.error is not None:
                raise self._pipe.error
            return None
        self._reported += copied
        return copied

    def interrupt(self) -> None:
        self._pipe.stop()

    def abort(self) -> None:
        self._pipe.stop()
        if self._thread is not None:
            join(self._thread)

    def pause(self) -> None:
        """End it: of what was passed on, nothing outlives this process."""
        self.abort()

    def result(self) -> Metadata:
        if self._pipe.result is None:
            raise InvalidInput("the copy is not complete and has no metadata yet")
        return self._pipe.result

    def state(self) -> Mapping[str, Any]:
        """That it is begun, and no more: whoever goes on begins anew."""
        return {"driver": NAME}


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
            try:
                pipe.result = self._write(pipe)
            # The source can be read again, which an ordinary caller's chunks cannot.
            except WriteAgain:
                pipe.result = self._write(pipe)
        except BaseException as error:
            pipe.error = error
        finally:
            pipe.end()

    def _write(self, pipe: _Pipe) -> Metadata:
        origin = self.origin.with_chain(self.origin.chain.around(Stopping(pipe)))
        options = write_options(self._tagged(origin), self.options)
        into = self.into.with_chain(self.into.chain.around(Stopping(pipe)))
        return into.write(self.target, self._chunks(origin, pipe), options)

    def _tagged(self, origin: Service) -> Metadata:
        """The source with its tags, which a stat may leave out.

        They are not dropped because we may not read them: that is an error, before any write.
        """
        carried = self.options.carry_tags and self.into.capability.user_metadata
        if not carried or not isinstance(origin, Tagging):
            return self.source
        return replace(self.source, tags=origin.tags_to_carry(self.source))

    def _chunks(self, origin: Service, pipe: _Pipe) -> Iterator[bytes]:
        passed = 0
        for chunk in self._read(origin, pipe):
            passed += len(chunk)
            if passed > self.source.size:
                raise IntegrityError(f"{self._name} gave more than its {self.source.size} bytes")
            yield chunk
            pipe.report(passed)
        if passed != self.source.size:
            raise IntegrityError(f"{self._name} gave {passed} of its {self.source.size} bytes")
        pipe.wait_for_commit()

    def _read(self, origin: Service, pipe: _Pipe) -> Iterator[bytes]:
        if not self.source.size:
            return
        known = self.source.checksum
        options = replace(
            # The whole is asked for: services tell their checksums of no less.
            pinned_options(origin, self.source, ByteRange()),
            checksums=(known,) if known else (),
            verify=self.options.verify == "checksum",
        )
        for chunk in read_on(origin, self.source.path, options):
            if pipe.is_stopped():
                raise Aborted("the copy was aborted")
            yield chunk

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
