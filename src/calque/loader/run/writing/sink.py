"""A file to write into, whose bytes go to an Operator as they come."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Empty, Full, Queue

from calque.errors import Aborted
from calque.operator import Operator
from calque.values import MIB

_CHUNK = 4 * MIB
_AHEAD = 4
"""Chunks that wait for the service; beyond them encoding waits, so memory stays bounded."""
_PATIENCE = 0.2
"""Seconds: neither side may wait for good, since the other may have ended with an error."""


class Sink:
    """Push meets pull: ``write`` fills chunks, a thread hands them to ``Operator.write``.

    The object appears when :meth:`close` returns, whole; after :meth:`abandon` there is nothing.
    """

    def __init__(self, operator: Operator, path: str) -> None:
        self._queue: Queue[bytes | None] = Queue(_AHEAD)
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._abandoned = False
        self._error: BaseException | None = None
        self.size = 0
        self.closed = False
        self._thread = threading.Thread(
            target=self._upload, args=(operator, path), name=f"sink {path}", daemon=True
        )
        self._thread.start()

    def write(self, data: bytes) -> int:
        self._held.append(data)
        self._held_bytes += len(data)
        self.size += len(data)
        if self._held_bytes >= _CHUNK:
            self._send_held()
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Nothing is gained by sending less than a chunk."""

    def close(self) -> None:
        """Send the rest and wait until the object is there."""
        if self.closed:
            return
        self.closed = True
        if self._held:
            self._send_held()
        self._send(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        """Give up: the Operator drops what it was sent."""
        self._abandoned = True
        self.closed = True
        self._thread.join()

    def _send_held(self) -> None:
        chunk = b"".join(self._held)
        self._held, self._held_bytes = [], 0
        self._send(chunk)

    def _send(self, chunk: bytes | None) -> None:
        while self._thread.is_alive():
            try:
                self._queue.put(chunk, timeout=_PATIENCE)
            except Full:
                continue
            return
        if self._error is not None:
            raise self._error

    def _chunks(self) -> Iterator[bytes]:
        while True:
            if self._abandoned:
                raise Aborted("the data file is not wanted any more")
            try:
                chunk = self._queue.get(timeout=_PATIENCE)
            except Empty:
                continue
            if chunk is None:
                return
            yield chunk

    def _upload(self, operator: Operator, path: str) -> None:
        try:
            operator.write(path, self._chunks())
        except BaseException as error:
            self._error = error
