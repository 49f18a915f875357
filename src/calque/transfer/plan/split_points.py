"""Where to cut a range of keys in two, by what was seen of them.

Nobody tells how keys lie between two borders. What is known are the keys of pages that were listed.
A cut falls on a letter: at the first place where keys may differ, half of the letters that may
follow there go to each side. Two things keep cuts from falling where no key is:

- a stretch that looks the same in all keys seen (``year=2026/``, a long folder name) is jumped over
  with one cut behind all keys that share it; whatever lies there has been cut off with it;
- the letters of a place are those that stand together in places of the same kind: digits, digits
  with ``a`` to ``f``, whole alphabets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import inf

from calque.transfer.model import KeyRange, sort_key

LAST = "\U0010ffff"
"""Behind every letter: ``prefix + LAST`` is behind all keys with the prefix, but those that go on
with this very letter, which are cut off with what comes next."""
_SAMPLES = 64
"""Keys of a page that are remembered for their letters."""
_REMEMBERED = 4096
_DEPTH = 6
"""Letters of a key that say how far it is in its range."""
ENOUGH = 3.0
"""Pages: what has fewer left is not cut."""
_CLASSES = ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


class SeenKeys:
    """What pages have shown of a key space. Not safe between threads by itself."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._together: dict[str, set[str]] = {group: set() for group in _CLASSES}
        self._usual: dict[str, list[str]] = {}

    def add(self, page: Sequence[str]) -> None:
        """Remember a page: some of its keys, evenly, its first and its last among them."""
        if not page:
            return
        step = max(1, len(page) // _SAMPLES)
        sample = [*page[::step], page[-1]]
        self._usual.clear()
        self._learn_letters(sample)
        for key in (page[0], page[len(page) // 2], page[-1]):
            self._remember(key)

    def _remember(self, key: str) -> None:
        if len(self._keys) >= _REMEMBERED:
            del self._keys[1::2]  # evenly thinned: what is left still shows where letters differ
        place = bisect_left(self._keys, key)
        if place == len(self._keys) or self._keys[place] != key:
            self._keys.insert(place, key)

    def _learn_letters(self, sample: Sequence[str]) -> None:
        """Which letters stand in the place of one another: they follow the same prefix."""
        shared = count_shared(sample[0], sample[-1])  # keys come in order
        for position in range(shared, shared + _DEPTH):
            for _, alike in groupby(sample, key=lambda key: key[:position]):
                letters = {key[position] for key in alike if len(key) > position}
                for group, together in self._together.items():
                    if len(letters) > 1 and not letters.isdisjoint(group):
                        together |= {letter for letter in letters if letter.isalnum()}

    def letters_after(self, prefix: str) -> set[str]:
        """The letters that were seen to follow a prefix."""
        start = bisect_left(self._keys, prefix)
        end = bisect_right(self._keys, prefix + LAST)
        length = len(prefix)
        return {key[length] for key in self._keys[start:end] if len(key) > length}

    def usual_alphabet(self, letter: str) -> list[str]:
        """The letters among which this one stands, where keys differ; none for ``/`` and such."""
        if letter not in self._usual:
            group = next((group for group in _CLASSES if letter in group), "")
            together = self._together.get(group, set())
            self._usual[letter] = sorted(set(group) | together) if together else []
        return self._usual[letter]

    def alphabet_of(self, letters: Iterable[str]) -> list[str]:
        """The letters that may stand where these were seen, in order."""
        found = set(letters)
        for group, together in self._together.items():
            if not found.isdisjoint(group):
                found |= set(group) | together
        return sorted(found)


@dataclass(frozen=True, slots=True)
class Border:
    """A place to cut, and how many pages are thought to be left of the range that is cut."""

    key: str
    pages_left: float


def find_border(seen: SeenKeys, first: str, cursor: str, up_to: str | None) -> Border | None:
    """Where to cut a range whose last page went from ``first`` to ``cursor``; what is left of it
    goes to ``up_to``. None where that is thought to be too little."""
    page = count_shared(first, cursor)
    position = 0 if up_to is None else count_shared(cursor, up_to)
    # A page that holds several names at this place has more keys than what is left behind it.
    while position <= page and position < len(cursor):
        prefix = cursor[:position]
        if position < page and len(seen.letters_after(prefix)) <= 1:
            key = cursor[: (position + page + 1) // 2] + LAST
            if _is_between(cursor, key, up_to):
                return Border(key, inf)
        else:
            top = up_to[position] if up_to is not None and len(up_to) > position else None
            letters = seen.letters_after(prefix) | {cursor[position]}
            found = _halve(seen, letters, first, cursor, position, top)
            if found is not None and _is_between(cursor, found.key, up_to):
                return found if found.pages_left >= ENOUGH else None
        position += 1
    return None


def _halve(
    seen: SeenKeys, letters: set[str], first: str, cursor: str, position: int, top: str | None
) -> Border | None:
    """The middle of the letters that are left at a place."""
    alphabet = seen.alphabet_of(letters)
    start = bisect_right(alphabet, cursor[position])
    end = len(alphabet) if top is None else bisect_left(alphabet, top)
    if start >= end:
        return None
    spent = _distance(seen, alphabet, first, cursor, position)
    left = end - start + 1 - _fraction(seen, cursor, position + 1)
    return Border(cursor[:position] + alphabet[(start + end) // 2], left / max(spent, 1e-9))


def _distance(seen: SeenKeys, alphabet: list[str], first: str, cursor: str, position: int) -> float:
    """How many letters of a place one page went on."""
    begun = bisect_left(alphabet, first[position]) if len(first) > position else 0
    ended = bisect_left(alphabet, cursor[position])
    below = _fraction(seen, cursor, position + 1) - _fraction(seen, first, position + 1)
    return ended - begun + below


def _fraction(seen: SeenKeys, key: str, position: int) -> float:
    """How far a key is among those that share its letters before a place: from 0 to 1."""
    told, scale = 0.0, 1.0
    for letter in key[position : position + _DEPTH]:
        alphabet = seen.usual_alphabet(letter)
        scale /= len(alphabet) or 1
        told += bisect_left(alphabet, letter) * scale
    return told


def _is_between(cursor: str, border: str, up_to: str | None) -> bool:
    key = sort_key(border)
    return sort_key(cursor) < key and (up_to is None or key < sort_key(up_to))


def count_shared(one: str, two: str) -> int:
    """How many letters two keys begin with alike."""
    if two.startswith(one):
        return len(one)
    return next(
        (at for at, (left, right) in enumerate(zip(one, two, strict=False)) if left != right),
        len(two),
    )


def keeps_borders(page: Sequence[str], first_after: Callable[[str], str | None]) -> bool:
    """Whether a listing can be begun in the middle: what follows one key of a page lies behind it,
    and not behind its next one.

    ``first_after`` asks for the first key after another, in one request. Servers that ignore
    ``start-after``, or follow another order, are found. Keys that filters leave out of a page may
    lie between two of it.
    """
    if any(sort_key(one) >= sort_key(two) for one, two in pairwise(page)):
        return False
    if len(page) < 2:
        return True
    middle = (len(page) - 1) // 2
    found = first_after(page[middle])
    return found is not None and KeyRange(page[middle], page[middle + 1]).holds(found)
