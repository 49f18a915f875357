"""Listings that come in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from calque.operator.http.paging import PageGuard, borders
from calque.values import Metadata

Page = tuple[Sequence[Metadata], str | None]
"""Entries, and the token of the next page; none on the last."""


def fetch_pages(location: str, fetch: Callable[[str | None], Page]) -> Iterator[Sequence[Metadata]]:
    """The pages of a listing, each asked for when it is needed.

    Raises Unexpected where a server sends the same page for ever.
    """
    turning, token = PageGuard(location), None
    while True:
        entries, token = fetch(token)
        yield entries
        if not token:
            return
        # With versions: thousands of them may be of one key, page after page.
        turning.check(token, borders([f"{entry.path}@{entry.version}" for entry in entries]))
