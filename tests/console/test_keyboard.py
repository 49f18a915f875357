"""The console by the keyboard alone: all of a page is reached, and one sees where one is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.console.test_browser import Watched, signed_in
from tests.console.test_every_address import PAGES
from tests.console.world import World

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MARK = """() => {
  const reachable = "a[href], button, input:not([type=hidden]), textarea, select, summary, "
    + "[tabindex='0']";
  const found = [...document.querySelectorAll(reachable)].filter((each) => each.checkVisibility());
  found.forEach((each, number) => { each.dataset.number = number; });
  return found.length;
}"""
"""Numbers all that can be used on a page."""

WHERE = """() => {
  const at = document.activeElement;
  if (!at || at.dataset.number === undefined) return null;
  return [Number(at.dataset.number), getComputedStyle(at).outlineStyle !== "none"];
}"""

INNER_STOPS = 10
"""A field for a time has stops of its own."""


@pytest.fixture(scope="module")
def tab(browser: Browser, world: World) -> Iterator[Watched]:
    """One for all pages; nothing went wrong in it."""
    with signed_in(browser, world) as context:
        watched = Watched(context.new_page(), world)
        yield watched
        watched.check()


@pytest.mark.parametrize("name", PAGES)
def test_everything_on_a_page_is_reached_by_tab(tab: Watched, name: str) -> None:
    """Links, fields, buttons, tables that scroll; with a frame around what is reached."""
    address = f"/{name}{PAGES[name]}".removesuffix("/")
    if name == "load":
        link = tab.go("/loads").locator("a[href*='load?id=']").first.get_attribute("href")
        address = str(link).removeprefix("/console")
    page = tab.go(address)
    count = page.evaluate(MARK)
    assert count > 5
    reached, unseen = set(), set()
    for _ in range(count + INNER_STOPS):
        page.keyboard.press("Tab")
        at = page.evaluate(WHERE)
        if at is not None:
            reached.add(at[0])
            if not at[1]:
                unseen.add(at[0])
    assert reached == set(range(count))
    assert unseen == set()
