"""Files that become durable together: one sync for their bytes, one for their names."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from calque.errors import Aborted, CalqueError
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
        self._naming = threading.Lock()
        """Held while a file gets its name: none does once all was given up."""
        self._unnamed: set[Aside] = set()
        self._given_up = False

    def add(self, file: Aside, size: int, ended: Ended) -> None:
        """Take a file over; some thread calls ``ended`` once it is durable, or has failed."""
        with self._naming:
            self._unnamed.add(file)
        if self._given_up:
            self._fail(file, ended, Aborted("its run was stopped"))
            return
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

    def give_up(self) -> None:
        """Remove the files that have no name yet: nobody waits for their sync any more."""
        with self._naming:
            self._given_up = True
            for file in self._unnamed:
                file.discard()

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
                self._fail(each.file, each.ended, error)
            return
        made: list[tuple[_Waiting, Metadata]] = []
        for each in batch:
            try:
                made.append((each, self._publish(each.file)))
            except CalqueError as error:
                self._fail(each.file, each.ended, error)
        failure = self._sync_names(devices)
        for each, found in made:
            each.ended(found if failure is None else failure)

    def _publish(self, file: Aside) -> Metadata:
        with self._naming:
            if self._given_up:
                raise Aborted("its run was stopped")
            found = file.publish()
            self._unnamed.remove(file)
            return found

    def _fail(self, file: Aside, ended: Ended, error: CalqueError) -> None:
        with self._naming:
            self._unnamed.discard(file)
            file.discard()
        # One that was removed meanwhile could not be synced: that is no failure of its disk.
        ended(Aborted("its run was stopped") if self._given_up else error)

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
