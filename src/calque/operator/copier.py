"""Copier: one copy that the caller drives, watches, stops and resumes."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from enum import Enum
from types import TracebackType
from typing import Literal, Self

from calque import tracing
from calque.errors import Aborted, IntegrityError, InvalidInput, Unsupported
from calque.operator.checkpoint import Checkpoint, CopyIdentity
from calque.operator.drivers.multipart import MultipartDriver
from calque.operator.layers.stop import StopSignal
from calque.operator.service import CopyDriver, Interruptible
from calque.values import Metadata, Progress

Route = Literal["server-side", "through the client"]

_PAUSE_SECONDS = 10.0
"""How long a pause waits for parts in flight: what arrives is not copied again."""


class _State(Enum):
    READY = "ready"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"
    PAUSED = "paused"


class Copier(Iterator[int]):
    """A copy as an iterator of the bytes that each step has copied.

    The copy is complete only when iteration ends: the target is committed then, and not before.
    After an error, iterating again raises that error again and :meth:`abort` clears what was left.
    As a context manager it aborts when it is left unfinished, by an exception or otherwise.
    One thread drives it; :meth:`abort` from another waits for the step under way. It ends within a
    second, however slow the peer, save in the midst of a request that commits: of such a one it
    must be known how it ended.
    """

    def __init__(
        self,
        driver: CopyDriver,
        identity: CopyIdentity,
        *,
        route: Route,
        resumable: bool,
        resumed: bool = False,
        stop: StopSignal | None = None,
    ) -> None:
        self._driver = driver
        self._identity = identity
        self._route: Route = route
        self._resumable = resumable
        self._resumed = resumed
        self._stop = stop or StopSignal()
        self._state = _State.READY
        self._error: Exception | None = None
        self._copied = 0
        self._stopping = False
        self._told_of_leftovers = False
        self._lock = threading.RLock()

    @property
    def route(self) -> Route:
        """Which way the bytes go."""
        return self._route

    @property
    def progress(self) -> Progress:
        """Bytes copied and bytes in all; never goes back and ends at the total."""
        return Progress(self._copied, self._driver.total)

    @property
    def source(self) -> Metadata:
        """The source as it was when the copy began; exactly these bytes are copied."""
        return self._identity.source

    @property
    def metadata(self) -> Metadata:
        """The target's metadata; raises InvalidInput before the copy is complete."""
        if self._state is not _State.DONE:
            raise InvalidInput(f"{self._what} is {self._state.value}, not complete")
        return self._driver.result()

    @property
    def _what(self) -> str:
        return f"the copy of {self._identity.source_location} to {self._identity.target_location}"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> int:
        with self._lock:
            if self._state is _State.DONE:
                raise StopIteration
            self._refuse_when_over()
            self._state = _State.RUNNING
            try:
                copied = self._advance()
            except Exception as error:
                self._state, self._error = _State.FAILED, error
                raise
            except BaseException:
                # Ctrl-C may have cut the step between a part's end and its being told: the count
                # could be wrong from here on, so the copy is aborted, or paused and resumed.
                self._state = _State.FAILED
                self._error = Aborted(f"{self._what} was interrupted", hint="Abort or resume it.")
                raise
            if copied is None:
                self._state = _State.DONE
                raise StopIteration
            return copied

    def _refuse_when_over(self) -> None:
        if self._error is not None:
            raise self._error
        if self._state in (_State.ABORTED, _State.PAUSED):
            raise Aborted(f"{self._what} was {self._state.value}; start or resume it anew")
        if self._stopping:
            raise Aborted(f"{self._what} is being aborted")

    def _advance(self) -> int | None:
        copied = self._driver.step()
        if copied is None:
            self._verify()
            return None
        if copied < 0 or self._copied + copied > self._driver.total:
            raise IntegrityError(
                f"{self._what}: a step of {copied} bytes after {self._copied} "
                f"does not fit a total of {self._driver.total}"
            )
        self._copied += copied
        return copied

    def _verify(self) -> None:
        if self._copied != self._driver.total:
            raise IntegrityError(
                f"{self._what} ended after {self._copied} of {self._driver.total} bytes"
            )
        verify = self._identity.options.verify
        source, target = self._identity.source, self._driver.result()
        if verify != "none" and target.size != source.size:
            raise IntegrityError(
                f"{self._what} made {target.size} bytes out of {source.size}",
                hint="The target is there and is wrong: copy again, or delete it.",
            )
        if verify == "checksum" and _differ(source, target):
            raise IntegrityError(
                f"{self._what}: the checksums disagree ({source.checksum} and {target.checksum})",
                hint="The target is there and is wrong: copy again, or delete it.",
            )

    def run(self) -> Metadata:
        """Drain the copy and return the target's metadata; abort it on any error.

        A failure of that abort never hides the first error: it is attached to it as a note that
        names what was left behind.
        """
        size = self._identity.source.size
        with (
            tracing.span("copy", path=self.source.path, bytes=size, route=self.route),
            self,
        ):
            for _ in self:
                pass
        return self.metadata

    def abort(self) -> None:
        """Stop the copy and remove what it has left on the server; the target stays as it was.

        Nothing is sent when the copy has not begun; nothing happens when it is complete or
        aborted already. Allowed after an error, and again after an abort that failed.
        """
        # Told before the lock is had: a loop in another thread must not take one more step first.
        self._stopping = True
        self._stop.stop()
        if isinstance(self._driver, Interruptible):
            self._driver.interrupt()
        with self._lock:
            if self._state in (_State.DONE, _State.ABORTED, _State.PAUSED):
                return
            if self._resumed or self._state is not _State.READY:
                self._driver.abort()
            self._state = _State.ABORTED

    def pause(self) -> Checkpoint:
        """Stop the copy but keep what the server holds of it; resume it from the checkpoint.

        Parts in flight may still arrive; those that do not within some seconds are given up. This
        copier is over then. Raises Unsupported where the service cannot resume copies.
        """
        with self._lock:
            checkpoint = self.checkpoint()
            if self._state is not _State.DONE:
                patience = threading.Timer(_PAUSE_SECONDS, self._stop.stop)
                patience.daemon = True
                patience.start()
                try:
                    self._driver.pause()
                finally:
                    patience.cancel()
                checkpoint = self.checkpoint()
                self._state = _State.PAUSED
            return checkpoint

    def open_parts(self) -> Checkpoint | None:
        """Open what the parts go into, and pause: other processes may bring them, by
        :func:`calque.operator.copy.copy_parts`, before this copy is resumed. None, with nothing
        done, where it is not made of parts that can come in any order.
        """
        with self._lock:
            driver = self._driver
            if not isinstance(driver, MultipartDriver) or not driver.in_any_order:
                return None
            self._refuse_when_over()
            self._state = _State.RUNNING
            driver.open()
            return self.pause()

    def checkpoint(self) -> Checkpoint:
        """Where the copy stands, for ``Operator.resume`` in this or another process."""
        with self._lock:
            if not self._resumable:
                raise Unsupported(
                    f"{self._what} cannot be resumed: {self._identity.scheme} "
                    "has no copies that survive their process"
                )
            if self._state in (_State.ABORTED, _State.PAUSED):
                raise Aborted(f"{self._what} was {self._state.value}")
            return Checkpoint.of(self._identity, self._driver.state())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.abort()
        except Exception as failure:
            if error is None:
                raise
            left = "; ".join(getattr(failure, "__notes__", []))
            error.add_note(f"aborting {self._what} failed too: {failure}; {left}")
            self._told_of_leftovers = True

    def __del__(self) -> None:
        state = getattr(self, "_state", _State.READY)
        if state in (_State.RUNNING, _State.FAILED) and not self._told_of_leftovers:
            warnings.warn(
                f"{self._what} was neither finished nor aborted; what it left is found by a sweep",
                ResourceWarning,
                stacklevel=2,
            )

    def __repr__(self) -> str:
        return (
            f"<Copier {self._identity.source_location} to {self._identity.target_location}: "
            f"{self._state.value}, {self._copied} of {self._driver.total} bytes>"
        )


def _differ(source: Metadata, target: Metadata) -> bool:
    ours, theirs = source.checksum, target.checksum
    if ours is None or theirs is None or ours.algorithm != theirs.algorithm:
        return False
    return ours.value != theirs.value
