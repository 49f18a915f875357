"""Ranges of keys: they cover without gap or overlap, whoever cuts them and whenever."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import InvalidInput
from calque.transfer.model import EVERYTHING, KeyRange, sort_key
from calque.transfer.plan.split_points import SeenKeys, find_border, keeps_borders
from calque.transfer.run.ranges import OpenRange, RangePool, cover, cut

_letters = st.one_of(
    st.sampled_from("ab/0\U0010ffff\ue000\ud7ff\x01\udc80\udcff"),
    st.characters(exclude_categories=["Cs"]),
)
_keys = st.text(_letters, min_size=1, max_size=8)


@given(st.lists(_keys, max_size=12), st.lists(_keys, max_size=30))
def test_cover(borders: list[str], keys: list[str]) -> None:
    """Each key, a border or not, lies in exactly one range, and ranges follow one another."""
    ranges = cover(borders)
    for key in [*keys, *borders]:
        assert sum(each.holds(key) for each in ranges) == 1
    assert ranges[0].after == ""
    assert ranges[-1].up_to is None
    for one, two in pairwise(ranges):
        assert one.up_to == two.after


def test_cut_outside() -> None:
    """A border that does not lie within a range cuts nothing."""
    for border in ("", "b", "c", "z"):
        with pytest.raises(InvalidInput):
            cut(KeyRange("b", "c"), border)
    assert cut(KeyRange("b", "c"), "bb") == (KeyRange("b", "bb"), KeyRange("bb", "c"))


@given(st.lists(_keys, min_size=2, max_size=40, unique=True), st.data())
def test_borders_lie_within(keys: list[str], data: st.DataObject) -> None:
    """A border found by looking is strictly within what is left, and holds no new surrogate."""
    keys.sort(key=sort_key)
    seen = SeenKeys()
    seen.add(keys)
    at = data.draw(st.integers(1, len(keys) - 1))
    up_to = data.draw(st.none() | st.sampled_from(keys[at:]))
    border = find_border(seen, keys[0], keys[at - 1], up_to)
    if border is None:
        return
    inside = KeyRange(keys[at - 1], up_to)
    assert inside.holds(border.key)
    assert border.key != up_to
    known = set("".join(keys))
    assert all(letter in known for letter in border.key if "\ud800" <= letter <= "\udfff")


def _hex(count: int) -> list[str]:
    chance = Random(7)
    return sorted({f"{chance.getrandbits(128):032x}" for _ in range(count)})


def _digits(count: int) -> list[str]:
    return [f"{number:08d}" for number in range(count)]


def _dates(count: int) -> list[str]:
    parts = -(-count // (12 * 28 * 24))
    return [
        f"dt=2026-{month:02d}-{day:02d}/hour={hour:02d}/part-{part:05d}"
        for month in range(1, 13)
        for day in range(1, 29)
        for hour in range(24)
        for part in range(parts)
    ][:count]


def _one_long_prefix(count: int) -> list[str]:
    return [
        *(f"a/{number:04d}" for number in range(count // 200)),
        *(f"some/long/prefix/of/this/bucket/data-{n:08d}" for n in range(count * 99 // 100)),
        *(f"z/{number:04d}" for number in range(count // 200)),
    ]


def _words(count: int) -> list[str]:
    chance = Random(7)
    return sorted(
        {"".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(count)}
    )


class _Listing:
    """Workers that list by pages, in rounds: every request takes one round."""

    def __init__(self, keys: list[str], workers: int, page: int) -> None:
        self.keys, self.page = keys, page
        self.pool = RangePool()
        self.idle = workers
        self.open: deque[OpenRange] = deque()
        self.found: list[str] = []
        self.requests = self.rounds = 0

    def run(self) -> None:
        self._take()
        while self.open:
            self.rounds += 1
            for _ in range(len(self.open)):
                self._list_page(self.open.popleft())
                self._take()

    def _take(self) -> None:
        # take() would wait where nothing can be cut: it is called only when it will not.
        while self.idle and (
            self.pool._waiting or self.pool._cut_largest()  # the rounds stand in for threads
        ):
            taken = self.pool.take()
            assert taken is not None
            self.open.append(taken)
            self.idle -= 1

    def _list_page(self, mine: OpenRange) -> None:
        self.requests += 1
        start = bisect_right(self.keys, mine.after)
        page = self.keys[start : start + self.page]
        count = mine.claim(page)
        self.found += page[:count]
        if count < len(page) or len(page) < self.page:
            mine.finish()
            self.idle += 1
        else:
            self.open.append(mine)


@pytest.mark.parametrize("space", [_hex, _digits, _dates, _one_long_prefix, _words])
def test_splitting_unknown_spaces(space: Callable[[int], list[str]]) -> None:
    """16 workers need a fifth of the rounds of one, and at most half as many requests more."""
    keys = space(100_000)
    listing = _Listing(keys, workers=16, page=1000)
    listing.run()
    pages = -(-len(keys) // 1000)
    assert sorted(listing.found) == keys
    assert listing.rounds <= pages / 5
    assert listing.requests <= pages * 1.5


def test_one_worker_asks_for_no_more_than_the_pages() -> None:
    """One after the other no request is spent on looking."""
    keys = _hex(5_000)
    listing = _Listing(keys, workers=1, page=500)
    listing.run()
    assert listing.found == keys
    assert listing.requests == -(-len(keys) // 500) + (len(keys) % 500 == 0)


def test_threads_share_ranges() -> None:
    """Threads that cut one another's ranges find each key once, and all end."""
    keys = _dates(20_000)
    pool, found, lock = RangePool(), [], threading.Lock()

    def work() -> None:
        for mine in pool:
            while True:
                start = bisect_right(keys, mine.after)
                page = keys[start : start + 100]
                count = mine.claim(page)
                with lock:
                    found.extend(page[:count])
                mine.mark_done(mine.after)
                if count < len(page) or not page:
                    break
            mine.finish()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == keys
    assert pool.unfinished() == []


def test_unfinished_ranges_resume() -> None:
    """What is left at any moment, and what was done, are all keys, each once."""
    keys = _digits(5_000)
    pool = RangePool()
    first = pool.take()
    assert first is not None
    assert first.claim(keys[:1000]) == 1000
    first.mark_done(keys[499])
    second = pool.take()
    assert second is not None
    left = pool.unfinished()
    assert [key for key in keys if any(each.holds(key) for each in left)] == keys[500:]
    for key in keys[500:]:
        assert sum(each.holds(key) for each in left) == 1


def test_stop() -> None:
    """A pool that is stopped hands out nothing, and wakes whoever waits."""
    pool = RangePool(splits=False)
    assert pool.take() is not None
    waiting = threading.Thread(target=pool.take)
    waiting.start()
    pool.stop()
    waiting.join(30)
    assert not waiting.is_alive()
    assert pool.unfinished() == [EVERYTHING]


def test_border_check() -> None:
    """A server that ignores start-after, or follows another order, is found by one request."""
    page = ["a", "b", "c", "d"]

    def right(after: str) -> str | None:
        return next((key for key in page if key > after), None)

    assert keeps_borders(page, right)
    assert not keeps_borders(page, lambda after: "a")
    assert not keeps_borders(page, lambda after: None)
    assert not keeps_borders(page, lambda after: "d")
    assert keeps_borders(page, lambda after: f"{after}-left-out")
    # Folder by folder ``dir-2/x`` comes after ``dir/x``, although ``-`` sorts before ``/``.
    assert not keeps_borders(["dir/x", "dir-2/x"], right)
    assert keeps_borders([], right)
