"""Read, on every service."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import ConditionNotMatch, InvalidInput, IsADirectory, NotFound
from calque.operator import Operator
from tests.operator.behaviour.case import Case, content


def test_what_was_written_is_read(op: Operator, case: Case) -> None:
    """Bytes come back whole, also above the size of a part."""
    for size in (0, 1, case.large):
        data = content(size)
        op.write(f"s{size}", data)
        assert op.read(f"s{size}") == data
        assert b"".join(op.read_stream(f"s{size}")) == data


@pytest.mark.parametrize(
    ("offset", "length"),
    [(0, 0), (0, 1), (3, 4), (9, 1), (5, None), (0, 100), (8, 100), (10, 5), (50, 5), (50, None)],
)
def test_a_range_is_cut_like_a_slice(op: Operator, offset: int, length: int | None) -> None:
    """A range reads what a slice of the bytes would give; one past the end reads nothing."""
    data = b"0123456789"
    op.write("r", data)
    end = None if length is None else offset + length
    assert op.read("r", offset=offset, length=length) == data[offset:end]


def test_a_negative_range_is_refused(op: Operator) -> None:
    """Offsets and lengths below zero are bad input."""
    op.write("r", b"123")
    with pytest.raises(InvalidInput):
        op.read("r", offset=-1)
    with pytest.raises(InvalidInput):
        op.read("r", length=-1)


def test_a_missing_object_cannot_be_read(op: Operator) -> None:
    """NotFound, not empty bytes."""
    with pytest.raises(NotFound):
        op.read("missing")


@pytest.mark.parametrize("path", ["", "dir/"])
def test_a_directory_cannot_be_read(op: Operator, path: str) -> None:
    """IsADirectory for the root and for a path that ends in a slash."""
    with pytest.raises(IsADirectory):
        op.read(path)


def test_a_pinned_read_refuses_other_bytes(op: Operator, need: Callable[..., None]) -> None:
    """A read by the pin of a stat gives those bytes or ConditionNotMatch."""
    need("read_with_if_match")
    op.write("p", b"first")
    pin = op.stat("p").pin
    assert op.read("p", if_match=pin) == b"first"
    op.write("p", b"other")
    with pytest.raises(ConditionNotMatch):
        op.read("p", if_match=pin)


def test_random_ranges(op: Operator) -> None:
    """Any range inside the object is the same slice of it."""
    data = content(5000)
    op.write("big", data)

    @settings(max_examples=20, deadline=None)
    @given(offset=st.integers(0, 4999), length=st.integers(1, 6000))
    def check(offset: int, length: int) -> None:
        assert op.read("big", offset=offset, length=length) == data[offset : offset + length]

    check()
