"""The first hour of a stranger as one walk: page, commands, and what a browser shows of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.console.conftest import browser
from tests.documentation.blocks import blocks_of
from tests.documentation.reader import Reader
from tests.documentation.test_pages import DOCS, Scene, reader

playwright = pytest.importorskip("playwright.sync_api", reason="there is no Playwright")
expect = playwright.expect
__all__ = ["browser"]


@pytest.fixture(scope="module")
def walk(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Reader]:
    """Somebody who has done all that the page says, and whose server still runs."""
    with reader(Scene(), tmp_path_factory.mktemp("hour"), request) as one:
        for block in blocks_of(DOCS / "first-hour.md"):
            one.follow(block)
        yield one


def test_what_the_page_shows_is_true(walk: Reader) -> None:
    """All in one folder, in its order; what was shared arrived byte for byte."""
    landed = (walk.folder / "landing/november.csv").read_bytes()
    assert "Zürich".encode("cp1252") in landed
    assert (walk.folder / "from-a-friend/november.csv").read_bytes() == landed


def test_the_console_shows_what_was_done(walk: Reader, request: pytest.FixtureRequest) -> None:
    """By the address that was printed: the load, its rows, the syncs, the bucket, the key."""
    told = (walk.folder.parent / "told-0").read_text()
    address = re.search(r"http\S+token=\S+", told)
    assert address is not None, told
    page = request.getfixturevalue("browser").new_page()
    page.set_default_timeout(30_000)
    errors: list[str] = []
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.goto(address[0])
    page.get_by_role("button", name="Sign in").click()
    sections = page.get_by_role("navigation", name="Sections")
    sections.get_by_role("link", name="Loads").click()
    page.locator("a[href*='load?id=']").first.click()
    expect(page.get_by_role("region", name="Rejected rows")).to_contain_text("31/02/2026")
    sections.get_by_role("link", name="Copies and trees").click()
    expect(page.get_by_role("region", name="Jobs")).to_contain_text("backup/warehouse")
    sections.get_by_role("link", name="Objects").click()
    page.get_by_role("link", name="reports", exact=True).click()
    expect(page.get_by_role("link", name="private/", exact=True)).to_be_visible()
    sections.get_by_role("link", name="Keys").click()
    page.locator("tr", has_text="reports/2026/").get_by_role("button", name="Revoke").click()
    expect(page.locator("tr", has_text="reports/2026/")).to_have_count(0)
    assert errors == []
    page.close()
