"""The bytes of a write, cut into what one request carries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from calque.operator.chunks import regroup


def whole_or_pieces(chunks: Iterable[bytes], size: int) -> bytes | Iterator[bytes]:
    """All the bytes where they fit one piece, else their pieces.

    No more than two pieces are read to find out which.
    """
    pieces = regroup(chunks, size)
    first = next(pieces, b"")
    second = next(pieces, None) if len(first) == size else None
    return first if second is None else chain((first, second), pieces)


def mark_last(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Every piece (of one at least), and whether it is the last; one is read ahead to know."""
    held = next(pieces)
    for piece in pieces:
        yield held, False
        held = piece
    yield held, True
