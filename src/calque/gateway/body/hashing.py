"""Hashes of a body as it passes, in threads beside the one that encrypts it."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from calque.operator.http.digest import Running, start_hash

BESIDE = 1 << 20
"""Bytes from which other threads are worth their hand-overs."""
_AHEAD = 4
"""Blocks that wait to be hashed."""
_AT_ONCE = 8
"""Blocks that a thread hashes before it takes its turn behind those of other bodies."""

# Its threads only hash, so they never wait for anything: one for each processor is enough.
_pool = ThreadPoolExecutor(os.cpu_count() or 2, thread_name_prefix="calque-s3-hash")


class Hashing:
    """Several hashes of one stream of blocks."""

    def __init__(self, names: Iterable[str], size: int) -> None:
        self._running = {name: start_hash(name) for name in names}
        self._lanes: list[_Lane] = []
        if size >= BESIDE:
            # MD5 takes as long as all others together, so it has a thread of its own.
            slow = [each for name, each in self._running.items() if name == "md5"]
            rest = [each for name, each in self._running.items() if name != "md5"]
            self._lanes = [_Lane(each) for each in (slow, rest) if each]

    def update(self, block: bytes) -> None:
        """Take a block; a few may wait to be hashed while the next is made."""
        if not self._lanes:
            _hash(self._running.values(), block)
        for lane in self._lanes:
            lane.put(block)

    def digest(self, name: str) -> bytes:
        """The digest of all that came."""
        for lane in self._lanes:
            lane.wait()
        return self._running[name].digest()


class _Lane:
    """Blocks in their order through some hashes, by one thread at a time."""

    def __init__(self, running: Sequence[Running]) -> None:
        self._running = running
        self._blocks: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._is_busy = False
        self._error: BaseException | None = None

    def put(self, block: bytes) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._blocks) < _AHEAD)
            self._blocks.append(block)
            if not self._is_busy:
                self._is_busy = True
                _pool.submit(self._run)

    def wait(self) -> None:
        """Until every block that came is hashed."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_busy)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        for _ in range(_AT_ONCE):
            with self._changed:
                if not self._blocks:
                    self._is_busy = False
                    self._changed.notify_all()
                    return
                block = self._blocks.popleft()
                self._changed.notify_all()
            try:
                _hash(self._running, block)
            except BaseException as error:  # told to whoever asks for the digest
                self._error = error
        _pool.submit(self._run)


def _hash(running: Iterable[Running], block: bytes) -> None:
    for each in running:
        each.update(block)
