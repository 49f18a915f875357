"""A listing brought into the order of keys on disk, in memory that does not grow with it.

For sides that list folder by folder or in no order: runs of entries are sorted in memory, written
to unnamed files, and merged.
"""

from __future__ import annotations

import heapq
import pickle
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime
from itertools import islice
from typing import IO, Any, TypeVar

from calque.errors import ResourceExhausted
from calque.transfer.model import Entries, sort_key
from calque.values import Metadata

RUN = 50_000
"""Entries that are sorted at a time."""
_FANOUT = 64
"""Runs that are merged at a time: each holds a file open and a batch in memory."""
_BATCH = 256

T = TypeVar("T")
Packed = tuple[bytes, str, Any]


def sort_on_disk(entries: Iterable[tuple[str, Metadata]], *, run: int = RUN) -> Entries:
    """The same entries in the order of :func:`~calque.transfer.model.sort_key`.

    All are read before the first is given back. What fits into one run never touches the disk. The
    files have no name: nothing is left, whatever happens.
    """
    source = iter(entries)
    first = _sorted_run(source, run)
    if len(first) < run:
        yield from map(_unpack, first)
        return
    with ExitStack() as files:
        runs = [_write(files, first)]
        del first
        while packed := _sorted_run(source, run):
            runs.append(_write(files, packed))
            del packed
        while len(runs) > _FANOUT:
            merged = []
            for several in _batches(runs, _FANOUT):
                merged.append(_write(files, _merge(several)))
                for used in several:
                    used.close()
            runs = merged
        yield from map(_unpack, _merge(runs))


def _sorted_run(source: Iterator[tuple[str, Metadata]], run: int) -> list[Packed]:
    packed = [_pack(path, entry) for path, entry in islice(source, run)]
    packed.sort(key=_key)
    return packed


def _key(packed: Packed) -> bytes:
    return packed[0]


def _merge(runs: Iterable[IO[bytes]]) -> Iterator[Packed]:
    return heapq.merge(*map(_read, runs), key=_key)


def _write(files: ExitStack, packed: Iterable[Packed]) -> IO[bytes]:
    try:
        file: IO[bytes] = tempfile.TemporaryFile(prefix="calque-sort-")  # noqa: SIM115
        files.callback(file.close)
        for several in _batches(packed, _BATCH):
            pickle.dump(several, file, protocol=5)
        file.seek(0)
    except OSError as error:
        raise ResourceExhausted(
            f"a listing cannot be sorted on disk: {error.strerror}",
            hint="Set TMPDIR to a folder with room; some 200 bytes an object are needed.",
        ) from error
    return file


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    source = iter(items)
    while several := list(islice(source, size)):
        yield several


def _read(file: IO[bytes]) -> Iterator[Packed]:
    while True:
        try:
            yield from pickle.load(file)  # our own, from a file without a name
        except EOFError:
            return


def _pack(path: str, entry: Metadata) -> Packed:
    plain = not (entry.is_dir or entry.version or entry.checksum or entry.user or entry.tags)
    if not plain or entry.details() not in (None, {"storage_class": entry.storage_class}):
        return sort_key(path), path, entry
    moment = entry.last_modified
    return (
        sort_key(path),
        path,
        (entry.path, entry.size, moment, entry.etag, entry.token, entry.storage_class),
    )


def _unpack(packed: Packed) -> tuple[str, Metadata]:
    _, path, told = packed
    if isinstance(told, Metadata):
        return path, told
    name, size, moment, etag, token, storage_class = told
    moment_or_none: datetime | None = moment
    return path, Metadata.from_listing(
        name, size, moment_or_none, etag=etag, token=token, storage_class=storage_class
    )
