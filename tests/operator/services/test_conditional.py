"""Conditional requests that meet their own work."""

from __future__ import annotations

import pytest

from calque.errors import ConditionNotMatch, Unavailable
from calque.operator.layers import Retry
from calque.operator.layers.chain import Call, Chain
from calque.operator.services.conditional import new_mark, send_marked
from calque.values import Metadata

SOON = Chain((Retry(first=0.001, longest=0.001),))


class Server:
    """Makes one object; the answers it loses are those of the first ``lost`` requests."""

    def __init__(self, *, lost: int = 0, made_by: str | None = None) -> None:
        self.lost = lost
        self.made_by = made_by

    def make(self, mark: str) -> str:
        if self.made_by is not None:
            raise ConditionNotMatch("it exists already")
        self.made_by = mark
        if self.lost:
            self.lost -= 1
            raise Unavailable("the connection broke")
        return "made"

    def find(self, mark: str) -> Metadata | None:
        return Metadata(path="x") if self.made_by == mark else None


def send(server: Server, mark: str, *, repeated: bool = False) -> str | Metadata:
    """One conditional request, repeated by the retry layer where its answer is lost."""

    def request(_: Call) -> str:
        return server.make(mark)

    return send_marked(SOON, "write", "x", request, lambda: server.find(mark), repeated=repeated)


def test_an_answer_that_comes() -> None:
    """It is the answer; nothing is looked for."""
    assert send(Server(), "ours") == "made"


def test_a_lost_answer_is_a_success() -> None:
    """The repeat is refused because the first request has made the object."""
    assert send(Server(lost=1), "ours") == Metadata(path="x")


@pytest.mark.parametrize("repeated", [False, True])
def test_a_lost_race_is_none(repeated: bool) -> None:
    """The object of another stays another's, also where we may have been here before."""
    with pytest.raises(ConditionNotMatch):
        send(Server(made_by="theirs"), "ours", repeated=repeated)


def test_an_earlier_process_may_have_made_it() -> None:
    """A resumed copy looks for its mark at the first refusal; a new one cannot have left any."""
    assert send(Server(made_by="ours"), "ours", repeated=True) == Metadata(path="x")
    with pytest.raises(ConditionNotMatch):
        send(Server(made_by="ours"), "ours")


def test_marks_are_never_equal() -> None:
    """Two requests are never taken for each other."""
    assert len({new_mark() for _ in range(1000)}) == 1000
