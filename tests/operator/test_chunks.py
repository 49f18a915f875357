"""Chunks of what is written."""

import io

from hypothesis import given
from hypothesis import strategies as st

from calque.operator.chunks import chunks_of, regroup


@given(st.lists(st.binary(max_size=20)), st.integers(1, 9))
def test_regrouped_bytes_are_the_same(chunks: list[bytes], size: int) -> None:
    """All pieces have the size but the last, none is empty, no byte is lost."""
    pieces = list(regroup(chunks, size))
    assert b"".join(pieces) == b"".join(chunks)
    assert all(len(piece) == size for piece in pieces[:-1])
    assert all(pieces)


@given(st.binary(max_size=100))
def test_every_form_reads_alike(data: bytes) -> None:
    """Bytes, views, files and iterables are read as the same bytes; sizes known are right."""
    for form in (data, bytearray(data), memoryview(data), io.BytesIO(data), iter([data, b""])):
        chunks, size = chunks_of(form)
        assert b"".join(chunks) == data
        assert size in (None, len(data))
