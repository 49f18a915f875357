"""The bytes of a write, cut into what one request carries."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from calque.operator.services.pieces import mark_last, whole_or_pieces


@given(st.lists(st.binary(max_size=9), max_size=20), st.integers(1, 8))
def test_the_same_bytes(chunks: list[bytes], size: int) -> None:
    """Whole where they fit one piece; else full pieces, and a last one that is not empty."""
    found, everything = whole_or_pieces(chunks, size), b"".join(chunks)
    if isinstance(found, bytes):
        assert found == everything
        assert len(found) <= size
        return
    pieces = list(found)
    assert b"".join(pieces) == everything
    assert len(pieces) > 1
    assert {len(piece) for piece in pieces[:-1]} == {size}
    assert 1 <= len(pieces[-1]) <= size


@given(st.lists(st.binary(min_size=1, max_size=3), min_size=1))
def test_only_the_last_is_the_last(pieces: list[bytes]) -> None:
    """Every piece comes once, in order."""
    marked = list(mark_last(iter(pieces)))
    assert [piece for piece, _ in marked] == pieces
    assert [last for _, last in marked] == [False] * (len(pieces) - 1) + [True]


def test_no_more_than_two_are_read_to_know() -> None:
    """A producer without end is not read into memory before the first request."""
    read = []

    def produce() -> Iterator[bytes]:
        while True:
            read.append(1)
            yield b"1234"

    assert not isinstance(whole_or_pieces(produce(), 4), bytes)
    assert len(read) == 2
