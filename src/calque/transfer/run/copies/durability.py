"""Files that become durable together: one sync for their bytes, one for their names."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from calque.errors import CalqueError
from calque.operator.service import Aside
from calque.transfer.request.options import Fsync
from calque.values import MIB, Metadata

_FILES = 192
"""Each holds two descriptors while it waits; 1,024 is what many systems give a process."""
_BYTES = 128 * MIB
_SECONDS = 2.0

Ended = Callable[[Metadata | CalqueError], None]
"""Told once what became of a file: what it is, or why it is not there."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    file: Aside
    size: int
    ended: Ended


class DurableBatch:
    """Collects files that were written aside; whoever fills it up sees it through."""

    def __init__(self, fsync: Fsync) -> None:
        self._fsync = fsync
        self._most = {"each": 1, "batch": _FILES, "none": 1}[fsync]
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._bytes = 0
        self._since = time.monotonic()

    def add(self, file: Aside, size: int, ended: Ended) -> None:
        """Take a file over; some thread calls ``ended`` once it is durable, or has failed."""
        with self._lock:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting.append(_Waiting(file, size, ended))
            self._bytes += size
            full = len(self._waiting) >= self._most or self._bytes >= _BYTES
            late = time.monotonic() - self._since > _SECONDS
            batch = self._take() if full or late else []
        self._settle(batch)

    def flush(self) -> None:
        """See all through that wait."""
        with self._lock:
            batch = self._take()
        self._settle(batch)

    def _take(self) -> list[_Waiting]:
        batch, self._waiting, self._bytes = self._waiting, [], 0
        return batch

    def _settle(self, batch: list[_Waiting]) -> None:
        if not batch:
            return
        try:
            # The bytes before the names: a power cut between leaves the old files.
            devices = self._sync(batch)
        except CalqueError as error:
            for each in batch:
                each.file.discard()
                each.ended(error)
            return
        made: list[tuple[_Waiting, Metadata]] = []
        for each in batch:
            try:
                made.append((each, each.file.publish()))
            except CalqueError as error:
                each.ended(error)
        failure = self._sync_names(devices)
        for each, found in made:
            each.ended(found if failure is None else failure)

    def _sync(self, batch: list[_Waiting]) -> list[Callable[[], None]]:
        if self._fsync == "none":
            return []
        devices = {each.file.device: each.file for each in batch}
        for file in devices.values():
            file.sync()
        return [file.hold() for file in devices.values()]

    def _sync_names(self, devices: list[Callable[[], None]]) -> CalqueError | None:
        failure: CalqueError | None = None
        for sync in devices:
            try:
                sync()
            except CalqueError as error:
                failure = error
        return failure
