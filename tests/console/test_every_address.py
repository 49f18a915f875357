"""What holds for every address of the console: a page that is added has to be named here."""

from __future__ import annotations

import html
from urllib.parse import quote

import pytest

from tests.console.world import Visitor, World

PAGES = {
    "": "",
    "upkeep": "",
    "keys": "",
    "objects": "?path=photos%2F2026%2F",
    "folder": "?path=photos%2F2026%2F",
    "object": "?path=photos%2F2026%2Fbig.bin",
    "delete": "?path=photos%2F2026%2F&whole=yes",
    "loads": "",
    "load": "?id=LOAD",
    "jobs": "",
    "job": "?id=20260101T000000-left",
}
"""An address of each page."""

NO_PAGES = {"download"}


def changes_of(world: World) -> list[str]:
    """The addresses that change something."""
    sections = world.served.site._sections
    return ["sign-out", *(path for each in sections for path in each.changes)]


def views_of(world: World) -> set[str]:
    return {"", *(path for each in world.served.site._sections for path in each.views)}


def test_all_are_named_here(world: World) -> None:
    """So that none is left out below."""
    assert views_of(world) == PAGES.keys() | NO_PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_json_too_and_says_its_command(visitor: Visitor, page: str) -> None:
    """At the same address; the command is in both."""
    load = quote(visitor.json("/loads")["loads"][0]["load_id"])
    address = f"/{page}{PAGES[page].replace('LOAD', load)}".removesuffix("/")
    command = visitor.json(address)["command"]
    assert "calque " in command
    shown = visitor.get(address)
    assert shown.headers["content-type"].startswith("text/html")
    assert f"The same on the command line: <code>{html.escape(command)}" in html_of(shown.text)


def html_of(text: str) -> str:
    """One spelling of quotes."""
    return text.replace("&#39;", "&#x27;").replace("&#34;", "&quot;")


def test_a_stranger_sees_none_of_them(world: World) -> None:
    """People are led to the sign-in page, programs are told 401, forms change nothing."""
    stranger = world.visitor(signed_in=False)
    for page in views_of(world) | {"live"}:
        address = f"/{page}{PAGES.get(page, '')}"
        assert stranger.get(address).url.endswith("/sign-in"), page
        told = stranger.get(address, headers={"Accept": "application/json"})
        assert told.status_code == 401, page
    for change in changes_of(world):
        path = f"{world.url}/{change}?path=photos%2F2026%2F"
        refused = stranger.session.post(path, data={"csrf": "x"}, timeout=60)
        assert refused.status_code == 401, change


def test_no_change_without_the_token_of_the_session(world: World, visitor: Visitor) -> None:
    """Neither without one nor with that of another session, and not from another site."""
    other, mine = world.visitor().csrf(), visitor.csrf()
    foreign = {"Sec-Fetch-Site": "cross-site"}
    neighbour = {"Sec-Fetch-Site": "same-site"}  # another port of this host: the cookie comes along
    for change in changes_of(world):
        path = f"/{change}?path=photos%2F2026%2F&id=20260101T000000-left&service=tally"
        for refused in (
            visitor.post(path, csrf=""),
            visitor.post(path, csrf=other),
            visitor.post(path, csrf=mine, headers=foreign),
            visitor.post(path, csrf=mine, headers=neighbour),
        ):
            assert refused.status_code == 403, change
    assert visitor.get().status_code == 200, "still signed in"
