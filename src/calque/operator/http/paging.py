"""Listings that come in pages, and servers that never turn them."""

from __future__ import annotations

from collections.abc import Hashable

from calque.errors import Unexpected


class PageGuard:
    """Sees that a listing moves on from page to page."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._tokens: set[Hashable] = set()
        self._last: tuple[Hashable, ...] = ()
        self._repeats = 0

    def check(self, token: Hashable, names: tuple[Hashable, ...]) -> None:
        """Raise where the next page was had already, or the same one comes again and again.

        ``names`` are what tells a page from others; see :func:`borders`. One repeat is nothing: a
        folder of many keys may fill two pages.
        """
        self._repeats = self._repeats + 1 if names and names == self._last else 0
        # A token seen before means a circle, however long; equal pages one that stands still.
        if token in self._tokens or self._repeats > 1:
            raise Unexpected(
                f"the server lists the same page of {self._location} again and again",
                hint="It does not keep its place in a listing: look for a newer release of it.",
            )
        self._tokens.add(token)
        self._last = names


def borders(names: list[str]) -> tuple[Hashable, ...]:
    """The first and the last of a page, and how many it has."""
    return (names[0], names[-1], len(names)) if names else ()
