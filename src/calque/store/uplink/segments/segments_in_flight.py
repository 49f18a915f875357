"""Segments on their way: the caller's thread encrypts, others store what is encrypted already.

A segment is stored when its nodes say that it is safe, and that takes a disk's time. So a few
segments may be under way while the next is encrypted. The source of the bytes is only ever read
by the caller's thread. Between the two stands a short queue, which bounds the memory.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from calque.errors import Aborted

_BATCH, _QUEUED = 4, 4
"""Blocks handed over at once, and how many such batches may wait."""


class Handoff:
    """Blocks from the thread that encrypts to the one that stores."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._batches: deque[list[bytes]] = deque()
        self._ended = False
        self._broken = False

    def give(self, blocks: Iterable[bytes]) -> None:
        """Hand over every block; returns early when nobody takes them any more."""
        batch: list[bytes] = []
        for block in blocks:
            batch.append(block)
            if len(batch) == _BATCH:
                if not self._put(batch):
                    return
                batch = []
        self._put(batch)
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take(self) -> Iterator[bytes]:
        """The blocks, in order; Aborted when the rest will not come."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._batches or self._ended or self._broken)
                if self._broken:
                    # An error and no end: what came so far is no whole segment.
                    raise Aborted("the upload was stopped")
                if not self._batches:
                    return
                batch = self._batches.popleft()
                self._changed.notify_all()
            yield from batch

    def break_off(self) -> None:
        """Let neither side wait for the other any more."""
        with self._changed:
            self._broken = True
            self._changed.notify_all()

    def _put(self, batch: list[bytes]) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: len(self._batches) < _QUEUED or self._broken)
            self._batches.append(batch)
            self._changed.notify_all()
            return not self._broken


class SegmentsInFlight:
    """At most ``limit`` segments being stored; the first failure ends them all."""

    def __init__(self, limit: int) -> None:
        self._room = threading.Semaphore(limit)
        self._running: list[tuple[threading.Thread, Handoff]] = []
        self._error: BaseException | None = None

    def store(self, store: Callable[[Iterator[bytes]], None], blocks: Iterable[bytes]) -> None:
        """Encrypt all ``blocks`` here while a thread runs ``store`` over them.

        Waits for room first. The failure of any segment so far is raised here.
        """
        self._room.acquire()
        # Whoever failed gave its room back: without this look the next segment would begin first.
        self.raise_failure()
        handoff = Handoff()
        thread = threading.Thread(target=self._run, args=(store, handoff), daemon=True)
        self._running.append((thread, handoff))
        thread.start()
        handoff.give(blocks)
        self.raise_failure()

    def finish(self) -> None:
        """Wait for everything that was begun."""
        for thread, _ in self._running:
            thread.join()
        self.raise_failure()

    def stop(self) -> None:
        """Break everything off and wait until it has cleaned up."""
        for _, handoff in self._running:
            handoff.break_off()
        for thread, _ in self._running:
            thread.join()

    def raise_failure(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self, store: Callable[[Iterator[bytes]], None], handoff: Handoff) -> None:
        try:
            store(handoff.take())
        except BaseException as error:
            self._error = self._error or error
            handoff.break_off()
        finally:
            self._room.release()
