"""Pages of a listing."""

from __future__ import annotations

from itertools import islice

import pytest

from calque.errors import Unexpected
from calque.operator.services.listing import Page, fetch_pages
from calque.values import Metadata


def test_pages_are_asked_for_as_they_are_needed() -> None:
    """Each by the token of the one before; the last has none."""
    asked: list[str | None] = []

    def fetch(token: str | None) -> Page:
        asked.append(token)
        number = int(token or 0)
        return [Metadata(path=f"{number}")], f"{number + 1}" if number < 2 else None

    pages = fetch_pages("x://y", fetch)
    assert asked == []
    assert [page[0].path for page in pages] == ["0", "1", "2"]
    assert asked == [None, "1", "2"]


def test_many_versions_of_one_key() -> None:
    """Page after page may be of the same key: they are told apart by their versions."""

    def fetch(token: str | None) -> Page:
        number = int(token or 0)
        page = [Metadata(path="k", version=f"{number}{each}") for each in range(3)]
        return page, f"{number + 1}" if number < 9 else None

    assert sum(len(page) for page in fetch_pages("x://y", fetch)) == 30


@pytest.mark.parametrize("token", ["same", "ever new"])
def test_a_page_that_never_turns(token: str) -> None:
    """The same entries for ever are an error, whatever token comes with them."""
    count = 0

    def fetch(_: str | None) -> Page:
        nonlocal count
        count += 1
        return [Metadata(path="k")], token if token == "same" else f"{count}"

    with pytest.raises(Unexpected, match="again and again"):
        list(islice(fetch_pages("x://y", fetch), 100))
