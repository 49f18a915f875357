"""Listings that come in pages, and servers that never turn them."""

from __future__ import annotations

from collections.abc import Hashable

from calque.errors import Unexpected


class Turning:
    """Sees that a listing moves on from page to page."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._tokens: set[Hashable] = set()
        self._last: tuple[Hashable, ...] = ()

    def check(self, token: Hashable, names: tuple[Hashable, ...]) -> None:
        """Raise where the next page was had already, or this one is the one before it again.

        ``names`` are the first and the last of the page, and how many it has.
        """
        if token in self._tokens or (names and names == self._last):
            raise Unexpected(
                f"the server lists the same page of {self._location} again and again",
                hint="It does not keep its place in a listing: look for a newer release of it.",
            )
        self._tokens.add(token)
        self._last = names


def borders(names: list[str]) -> tuple[Hashable, ...]:
    """What tells one page from another."""
    return (names[0], names[-1], len(names)) if names else ()
