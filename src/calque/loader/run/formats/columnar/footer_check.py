"""What of a Parquet footer must be looked at before its library does.

The library ends the process where the levels that a column chunk counts are not those of its
column, or where a chunk has no metadata: it throws where nobody catches. Only the fields that lead
there are read, in Thrift's compact protocol; all others are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = (
    1, 2, 3, 7, 8, 9, 10, 11, 12, 13,
)  # fmt: skip
_NUMBERS = (4, 5, 6)
_DEEPEST = 40
"""No footer nests so deep; a hostile one must not use up the stack."""

_ROW_GROUPS, _COLUMNS, _META_DATA, _SIZES = 4, 1, 3, 16
_TEXT_BYTES, _REPETITIONS, _DEFINITIONS = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column that holds values: how deep it repeats, how deep it may be missing, its type."""

    repetitions: int
    definitions: int
    is_text: bool


def find_contradiction(footer: bytes, leaves: Sequence[Leaf]) -> str | None:
    """What the library would stumble over; None of a footer that it survives."""
    walk = _Walk(footer)
    try:
        for field, _ in walk.fields():
            if field != _ROW_GROUPS:
                continue
            for _ in walk.items():
                why = _check_row_group(walk, leaves)
                if why is not None:
                    return why
    except (IndexError, ValueError):
        return "it cannot be followed"
    return None


def _check_row_group(walk: _Walk, leaves: Sequence[Leaf]) -> str | None:
    for field, _ in walk.fields():
        if field != _COLUMNS:
            continue
        for index, _ in enumerate(walk.items()):
            why = _check_chunk(walk, leaves[index])
            if why is not None:
                return f"column {index + 1} {why}"
    return None


def _check_chunk(walk: _Walk, leaf: Leaf) -> str | None:
    described = False
    for field, _ in walk.fields():
        if field != _META_DATA:
            continue
        described = True
        for inner, _ in walk.fields():
            if inner == _SIZES and (why := _check_sizes(walk, leaf)) is not None:
                return why
    return None if described else "is not described"


def _check_sizes(walk: _Walk, leaf: Leaf) -> str | None:
    for field, _ in walk.fields():
        if field == _TEXT_BYTES and not leaf.is_text:
            return "counts the bytes of texts and has none"
        if field in (_REPETITIONS, _DEFINITIONS):
            levels = leaf.repetitions if field == _REPETITIONS else leaf.definitions
            count = sum(1 for _ in walk.items_passed_over())
            if count not in (0, levels + 1):
                return f"counts {count} levels and has {levels + 1}"
    return None


class _Walk:
    """A place in the bytes of a structure. What is not entered is passed over."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of the structure that begins here.

        A field whose value the caller did not read is passed over before the next one.
        """
        number = 0
        while True:
            head = self._byte()
            if head == 0:
                return
            step, kind = head >> 4, head & 15
            number = number + step if step else self._zigzag()
            before = self._at
            yield number, kind
            if self._at == before:
                self._skip(kind)

    def items(self) -> Iterator[None]:
        """Once for each structure of the list that begins here; the caller must read it."""
        count, kind = self._list_head()
        if kind != _STRUCT:
            raise ValueError("a list of structures is something else")
        for _ in range(count):
            yield

    def items_passed_over(self) -> Iterator[None]:
        """Once for each value of the list that begins here."""
        count, kind = self._list_head()
        for _ in range(count):
            self._skip_item(kind, 0)
            yield

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        count, kind = head >> 4, head & 15
        return (self._varint() if count == 15 else count), kind

    def _skip(self, kind: int, depth: int = 0) -> None:
        if kind in (_TRUE, _FALSE):
            return  # the value of a field is its type
        self._skip_item(kind, depth)

    def _skip_item(self, kind: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        if kind in (_TRUE, _FALSE, _BYTE):
            self._byte()
        elif kind in _NUMBERS:
            self._varint()
        elif kind == _DOUBLE:
            self._forward(8)
        elif kind == _UUID:
            self._forward(16)
        elif kind == _BINARY:
            self._forward(self._varint())
        elif kind in (_LIST, _SET):
            count, inner = self._list_head()
            for _ in range(count):
                self._skip_item(inner, depth + 1)
        elif kind == _MAP:
            self._skip_map(depth)
        elif kind == _STRUCT:
            self._skip_struct(depth)
        else:
            raise ValueError("a type that there is not")

    def _skip_map(self, depth: int) -> None:
        count = self._varint()
        kinds = self._byte() if count else 0
        for _ in range(count):
            self._skip_item(kinds >> 4, depth + 1)
            self._skip_item(kinds & 15, depth + 1)

    def _skip_struct(self, depth: int) -> None:
        while head := self._byte():
            if not head >> 4:
                self._varint()
            self._skip(head & 15, depth + 1)

    def _byte(self) -> int:
        found = self._data[self._at]
        self._at += 1
        return found

    def _forward(self, count: int) -> None:
        self._at += count
        if self._at > len(self._data):
            raise IndexError("beyond the end")

    def _varint(self) -> int:
        value = shift = 0
        while True:
            found = self._byte()
            value |= (found & 127) << shift
            if found < 128:
                return value
            shift += 7
            if shift > 70:
                raise ValueError("a number without end")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
