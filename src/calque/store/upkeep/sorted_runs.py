"""Entries on disk in the order of their keys, in memory that does not grow with them.

What is added at once is sorted and written as a run; reading goes through all runs of a group side
by side, one slice of the keys after the other. Keys are hashes, so slices of equal width hold about
equally many.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike, NDArray

from calque.errors import ResourceExhausted

SLICE = 50_000
"""Entries that are given back at once, about."""

_IN_MEMORY = 4 * 1024 * 1024
"""What is smaller never touches the disk."""

_KEYS = 2**64


class SortedRuns:
    """Entries of one type, with a ``key`` of 64 bits, in groups. The file has no name: nothing is
    left, whatever happens."""

    def __init__(self, entry: DTypeLike) -> None:
        self._entry = np.dtype(entry)
        self._file = tempfile.SpooledTemporaryFile(  # noqa: SIM115  # closed by `close`
            max_size=_IN_MEMORY, prefix="calque-sort-"
        )
        self._runs: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._end = 0

    def add(self, group: int, entries: NDArray[np.void]) -> None:
        """Keep some entries; ResourceExhausted where the disk has no room."""
        if not len(entries):
            return
        data = entries[np.argsort(entries["key"], kind="stable")].tobytes()
        try:
            self._file.seek(self._end * self._entry.itemsize)
            self._file.write(data)
        except OSError as error:
            raise ResourceExhausted(
                f"pieces cannot be sorted on disk: {error.strerror}",
                hint="Set TMPDIR to a folder with room; some 100 bytes a piece are needed.",
            ) from error
        self._runs[group].append((self._end, self._end + len(entries)))
        self._end += len(entries)

    def count(self, group: int) -> int:
        """Entries of a group."""
        return sum(end - first for first, end in self._runs.get(group, ()))

    def slices(self, group: int, slices: int) -> Iterator[NDArray[np.void]]:
        """The entries of a group in the order of their keys, in so many slices of all keys.

        Two groups, also of two files, that are cut into equally many have the same keys in each.
        """
        runs = [_Run(first, end, (end - first) // slices) for first, end in self._runs[group]]
        for number in range(1, slices + 1):
            last = number * _KEYS // slices - 1
            found = [part for run in runs for part in self._read_upto(run, last)]
            whole = np.concatenate(found) if found else np.empty(0, self._entry)
            yield whole[np.argsort(whole["key"], kind="stable")]

    def _read_upto(self, run: _Run, last: int) -> Iterator[NDArray[np.void]]:
        """What is left of a run, as far as a key."""
        while run.first < run.end:
            some = self._read(run.first, min(run.expected, run.end - run.first))
            wanted = int(np.searchsorted(some["key"], np.uint64(last), side="right"))
            run.first += wanted
            yield some[:wanted]
            if wanted < len(some):
                return

    def _read(self, first: int, count: int) -> NDArray[np.void]:
        self._file.seek(first * self._entry.itemsize)
        return np.frombuffer(self._file.read(count * self._entry.itemsize), self._entry)

    def close(self) -> None:
        """Let go of the disk."""
        self._file.close()


class _Run:
    """Where a run goes on, and how many of its entries a slice has, about."""

    def __init__(self, first: int, end: int, share: int) -> None:
        self.first, self.end = first, end
        self.expected = share + share // 8 + 32


def slices_for(*counts: int) -> int:
    """Into how many slices the keys are cut, for groups of these sizes."""
    return max(-(-max(counts) // SLICE), 1)
