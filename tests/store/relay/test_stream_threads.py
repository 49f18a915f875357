"""No key takes all the threads of a relay, however many keys are made from it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from calque.errors import RateLimited
from calque.store.metainfo.api_key import Action, ApiKey
from calque.store.relay import stream_threads
from calque.store.relay.stream_threads import StreamThreads, chain_of

COUNT = 8
READ = (Action.READ,)


class Calls:
    """Calls that last until they are let go; who began, in order."""

    def __init__(self) -> None:
        self.threads = StreamThreads(COUNT)
        self.began: list[str] = []
        self.changed = threading.Condition()
        self.let_go = threading.Semaphore(0)

    def send(self, name: str, key: bytes, count: int) -> None:
        for _ in range(count):
            self.threads.lane(key).submit(self._last, name)

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.began) >= count, timeout=60)

    def end(self, count: int = 1) -> None:
        for _ in range(count):
            self.let_go.release()

    def _last(self, name: str) -> None:
        with self.changed:
            self.began.append(name)
            self.changed.notify_all()
        self.let_go.acquire()


@pytest.fixture
def calls() -> Iterator[Calls]:
    made = Calls()
    yield made
    made.end(10_000)


def new_key() -> ApiKey:
    return ApiKey.create(b"s" * 32)


def test_a_key_leaves_a_quarter_to_others(calls: Calls) -> None:
    """Six of eight are its own; another key begins at once, and what waits comes later."""
    calls.send("greedy", bytes(new_key()), 20)
    calls.wait_for(6)
    calls.send("other", bytes(new_key()), 2)
    calls.wait_for(8)
    assert Counter(calls.began) == {"greedy": 6, "other": 2}
    calls.end(22)
    calls.wait_for(22)
    assert Counter(calls.began) == {"greedy": 20, "other": 2}


def test_keys_made_from_one_count_for_it(calls: Calls) -> None:
    """A hundred keys made from one have four threads together, as that one has."""
    first = new_key()
    lent = first.restrict(actions=READ)
    for number in range(100):
        own = lent.restrict(not_before=number)
        calls.send("lent", bytes(own), 1)
    calls.wait_for(4)
    calls.send("first", bytes(first), 3)
    calls.wait_for(6)
    calls.send("other", bytes(new_key()), 3)
    calls.wait_for(8)
    assert Counter(calls.began) == {"lent": 4, "first": 2, "other": 2}


def test_lanes_take_turns(calls: Calls) -> None:
    """Who came with many calls does not come before who came later with one."""
    calls.send("many", bytes(new_key()), 30)
    calls.send("more", bytes(new_key()), 30)
    calls.wait_for(8)
    calls.send("one", bytes(new_key()), 1)
    calls.end(3)
    calls.wait_for(11)
    assert "one" in calls.began


def test_too_many_that_wait_are_refused(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take memory without end; other keys are not refused."""
    monkeypatch.setattr(stream_threads, "MOST_WAITING", 5)
    key = new_key()
    calls.send("greedy", bytes(key), 6 + 5)
    with pytest.raises(RateLimited, match="wait"):
        calls.send("greedy", bytes(key.restrict(actions=READ)), 1)
    calls.send("other", bytes(new_key()), 1)
    calls.wait_for(7)


def test_a_long_chain_still_has_threads(calls: Calls) -> None:
    """However often a key was restricted, a quarter of the threads is within its reach."""
    key = new_key()
    for _ in range(30):
        key = key.restrict(actions=READ)
    calls.send("deep", bytes(key), 3)
    calls.wait_for(2)
    assert [calls.threads.share(depth) for depth in (0, 1, 2, 30)] == [6, 4, 3, 2]


def test_calls_that_fail_give_their_thread_back(calls: Calls) -> None:
    """The error is the future's, and nothing is counted any more."""

    def fail() -> None:
        raise ValueError("no")

    for _ in range(3 * COUNT):
        done = calls.threads.lane(bytes(new_key())).submit(fail)
        assert isinstance(done.exception(timeout=60), ValueError)
    assert not calls.threads._running
    assert not calls.threads._waiting


def test_what_is_no_key_shares_a_lane() -> None:
    """Bytes that anybody can make up are one caller, and two keys never are."""
    assert chain_of(b"") == chain_of(b"\xff\xff") == chain_of(bytes(100_000)) == (b"",)
    key = new_key()
    assert chain_of(bytes(key.restrict(actions=READ)))[0] == chain_of(bytes(key))[0]
    assert chain_of(bytes(key)) != chain_of(bytes(new_key()))
