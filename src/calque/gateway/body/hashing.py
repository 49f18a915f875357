"""Hashes of a body as it passes, in a thread beside the one that encrypts it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from calque.operator.http.digest import start_hash

BESIDE = 1 << 20
"""Bytes from which a second thread is worth its hand-overs."""

# Its threads only hash, so they never wait for anything: one for each processor is enough.
_pool = ThreadPoolExecutor(os.cpu_count() or 2, thread_name_prefix="calque-s3-hash")


class Hashing:
    """Several hashes of one stream of blocks."""

    def __init__(self, names: Iterable[str], size: int) -> None:
        self._running = {name: start_hash(name) for name in names}
        self._beside = size >= BESIDE
        self._last: Future[None] | None = None

    def update(self, block: bytes) -> None:
        """Take a block; at most one is being hashed while the next is made."""
        if not self._beside:
            self._hash(block)
            return
        self._wait()
        self._last = _pool.submit(self._hash, block)

    def digest(self, name: str) -> bytes:
        """The digest of all that came."""
        self._wait()
        return self._running[name].digest()

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()

    def _hash(self, block: bytes) -> None:
        for running in self._running.values():
            running.update(block)
