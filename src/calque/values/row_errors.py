"""Rejected rows: one with its place and reason, and those of a file as they travel and are kept.

A load may reject rows by the hundred thousand. They are met in a task, written once and read
seldom, so those of a file stay packed on their way through the driver into the ledger.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self, overload


class RowError(NamedTuple):
    """One rejected row: where it stands, why, and the row itself (cut).

    ``line`` is the physical line, from 1; 0 where the format has no lines.
    """

    file: str
    line: int
    record: int
    column: str | None
    character: int | None
    target_type: str | None
    value: str | None
    code: str
    message: str
    raw: str | None
    byte_offset: int | None = None


class RowErrors(Sequence[RowError]):
    """The errors of one file in order, packed; only the first is at hand."""

    __slots__ = ("_count", "_first", "packed")

    def __init__(self, first: RowError, count: int, packed: bytes) -> None:
        self._first = first
        self._count = count
        self.packed = packed

    @classmethod
    def of(cls, errors: Sequence[RowError]) -> Self:
        """At least one error, all of one file."""
        return errors if isinstance(errors, cls) else cls(errors[0], len(errors), pack(errors))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> RowError: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RowError, ...]: ...
    def __getitem__(self, index: int | slice) -> RowError | tuple[RowError, ...]:
        return self._first if index == 0 else tuple(self)[index]

    def __iter__(self) -> Iterator[RowError]:
        return unpack(self._first.file, self.packed)

    def __reduce__(self) -> tuple[type[Self], tuple[RowError, int, bytes]]:
        return type(self), (self._first, self._count, self.packed)


def pack(errors: Iterable[Sequence[Any]]) -> bytes:
    """Errors of one file, whose name is left out."""
    rows = [error[1:] for error in errors]
    return zlib.compress(json.dumps(rows, separators=(",", ":")).encode(), 1)


def unpack(file: str, packed: bytes) -> Iterator[RowError]:
    """The errors of ``file`` in their order."""
    for row in json.loads(zlib.decompress(packed)):
        yield RowError(file, *row)
