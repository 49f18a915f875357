"""Moves: the target is complete before the source goes, and nothing else goes."""

from collections.abc import Iterator

import pytest

from calque.errors import (
    AlreadyExists,
    ConditionNotMatch,
    IsADirectory,
    IsSameFile,
    NotFound,
    Unsupported,
)
from calque.operator import Operator
from tests.operator.behaviour.case import Case, content


@pytest.fixture
def away() -> Iterator[Operator]:
    """A service that no other can copy to by itself."""
    with Operator.from_uri("memory://") as operator:
        yield operator


def test_an_object_moves(op: Operator, other: Operator, case: Case) -> None:
    """The bytes are at the target and no longer at the source, on both sides of the threshold."""
    for size in (0, 5, case.large):
        data = content(size)
        op.write("from", data)
        assert op.rename("from", "a/to", into=other).size == size
        assert other.read("a/to") == data
        assert not op.exists("from")


def test_a_move_over_an_object_of_the_same_bytes(op: Operator) -> None:
    """A twin that was written in the same second is another object: the source goes, it stays."""
    op.write("from", b"same")
    op.write("to", b"same")
    op.rename("from", "to")
    assert [entry.path for entry in op.list()] == ["to"]
    assert op.read("to") == b"same"


def test_a_condition_of_a_move(op: Operator) -> None:
    """if_not_exists keeps the target, and then the source too."""
    op.write("from", b"new")
    op.write("to", b"old")
    with pytest.raises((AlreadyExists, ConditionNotMatch, Unsupported)):
        op.rename("from", "to", if_not_exists=True)
    assert (op.read("from"), op.read("to")) == (b"new", b"old")


def test_what_cannot_be_moved(op: Operator) -> None:
    """A missing source, a directory, an object onto itself: errors, and nothing is lost."""
    op.write("x", b"data")
    with pytest.raises(NotFound):
        op.rename("missing", "y")
    with pytest.raises(IsADirectory):
        op.rename("x", "folder/")
    with pytest.raises(IsSameFile):
        op.rename("x", "x")
    assert op.read("x") == b"data"


def test_a_move_between_services(op: Operator, away: Operator, case: Case) -> None:
    """Through the client both ways when that is asked; without leave nothing is touched."""
    data = content(case.large)
    op.write("from", data)
    with pytest.raises(Unsupported):
        op.rename("from", "to", into=away)
    op.rename("from", "to", into=away, stream=True)
    assert away.read("to") == data
    assert not op.exists("from")
    away.rename("to", "back", into=op, stream="auto")
    assert op.read("back") == data
    assert not away.exists("to")
