"""The rewrite driver, over a server that counts calls, tokens and bytes."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import CheckpointInvalid, ConditionNotMatch, IntegrityError, Unavailable
from calque.operator.drivers.rewrite import RewriteDriver
from calque.operator.drivers.verbs import Rewritten
from calque.values import Metadata


@dataclass
class Server:
    """Rewrites by the given advances; each token is valid once, and only in its order."""

    total: int
    advances: list[int]
    made: Metadata | None = None
    refuse: bool = False
    tokens: list[str | None] = field(default_factory=list)

    def rewrite(self, token: str | None) -> Rewritten:
        if self.refuse:
            raise ConditionNotMatch("the target exists")
        expected = f"t{len(self.tokens)}" if self.tokens else None
        assert token == expected, "each call carries the token of the last"
        self.tokens.append(token)
        copied = min(self.total, sum(self.advances[: len(self.tokens)]))
        if copied >= self.total:
            self.made = Metadata(path="to", size=self.total, etag="e")
            return Rewritten(self.total, self.total, None, self.made)
        return Rewritten(copied, self.total, f"t{len(self.tokens)}", None)

    def find_committed(self) -> Metadata | None:
        return self.made


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.integers(0, 300))
def test_steps_sum_up_to_the_total(advances: list[int], total: int) -> None:
    """However the server advances, steps are its advances and end at the total."""
    server = Server(total, [*advances, 300])
    driver = RewriteDriver(server, total)
    steps = []
    while (step := driver.step()) is not None:
        steps.append(step)
    assert sum(steps) == total
    assert all(step >= 0 for step in steps)
    assert driver.step() is None
    assert driver.result().size == total


def test_calls_without_progress_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stands still is given up; one that moves now and then is not."""
    stuck = RewriteDriver(Server(100, [0] * 2000), 100)
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(Unavailable):
        [stuck.step() for _ in range(1500)]
    slow = RewriteDriver(Server(30, [10, 0, 0, 10, 0, 0, 10]), 30, idle_calls=3)
    steps = [slow.step() for _ in range(8)]
    assert sum(step for step in steps if step) == 30
    assert steps[-1] is None


def test_new_tokens_are_signs_of_life() -> None:
    """A rewrite that tells no byte for long, but a new token each time, is not given up."""
    living = RewriteDriver(Server(100, [0] * 40 + [100]), 100, idle_calls=3)
    steps = [living.step() for _ in range(42)]
    assert steps[-2:] == [100, None]


@dataclass
class Stuck(Server):
    """A server that gives the same token again and again."""

    def rewrite(self, token: str | None) -> Rewritten:
        self.tokens.append(token)
        return Rewritten(0, self.total, "same", None)


def test_the_same_token_again_is_none() -> None:
    """The limit counts calls that bring the token they were sent."""
    server = Stuck(100, [])
    driver = RewriteDriver(server, 100, idle_calls=3)
    with pytest.raises(Unavailable):
        [driver.step() for _ in range(10)]
    assert len(server.tokens) == 4


def test_a_rewrite_goes_on_from_its_token() -> None:
    """A resumed driver sends the checkpoint's token and tells first what was copied before."""
    server = Server(100, [30, 30, 40])
    first = RewriteDriver(server, 100)
    assert first.step() == 30
    state = first.state()
    resumed = RewriteDriver.resume(server, state, size=100)
    assert [resumed.step() for _ in range(4)] == [30, 30, 40, None]
    assert server.tokens == [None, "t1", "t2"]


def test_a_rewrite_that_was_committed_meanwhile() -> None:
    """The condition fails because of the copy's own target: completed, not refused."""
    server = Server(100, [100])
    state = {"driver": "rewrite", "token": "t1", "copied": 50}
    server.refuse, server.made = True, Metadata(path="to", size=100)
    resumed = RewriteDriver.resume(server, state, size=100)
    assert [resumed.step() for _ in range(3)] == [50, 50, None]
    fresh = RewriteDriver(server, 100)
    with pytest.raises(ConditionNotMatch):
        fresh.step()


@pytest.mark.parametrize("token", [5, True, ["t"], "\udcff", "☃"])
def test_a_token_that_cannot_be_is_refused(token: object) -> None:
    """A checkpoint whose token no server could have given."""
    state = {"driver": "rewrite", "token": token, "copied": 5}
    with pytest.raises(CheckpointInvalid, match="token"):
        RewriteDriver.resume(Server(100, [100]), state, size=100)


@pytest.mark.parametrize("copied", [None, -1, 101, "5", 5.0])
def test_a_count_that_cannot_be_is_refused(copied: object) -> None:
    """A checkpoint that claims more than there is, or no number at all."""
    with pytest.raises(CheckpointInvalid):
        RewriteDriver.resume(Server(100, []), {"token": "t", "copied": copied}, size=100)


def test_replies_that_contradict_themselves() -> None:
    """Another total, or neither a token nor an end."""

    class Wrong(Server):
        def rewrite(self, token: str | None) -> Rewritten:
            return Rewritten(1, self.total, None, None)

    with pytest.raises(IntegrityError):
        RewriteDriver(Server(99, [1]), 100).step()
    with pytest.raises(IntegrityError):
        RewriteDriver(Wrong(100, []), 100).step()
