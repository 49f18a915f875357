"""The site as it is built, and as a browser shows it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from calque.errors import Unavailable
from tests.documentation.blocks import ROOT
from tests.servers.chromium import chromium

FETCHED = re.compile(
    r"<(?:script|img|iframe)[^>]+src=.?https?:"
    r"|<link[^>]+(?:stylesheet|preconnect)[^>]+https?:"
    r"|url\(.?https?:"
)
"""What makes a browser ask another host by itself; links that are clicked do not."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages, built as ``make docs`` does."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site, served on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and does not tell."""

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_the_site_is_built_without_a_warning(site: Path) -> None:
    """mkdocs finds every page of the navigation, every link and every anchor; made pages too."""
    for name in ("decisions/index", "reference/commands", "reference/settings", "reference/python"):
        assert (site / f"{name}.html").is_file()
    assert "lake/sales" in (site / "notebooks/first-load.html").read_text(encoding="utf-8")
    assert not list(site.rglob("*.py"))


def test_nothing_is_fetched_from_other_hosts(site: Path) -> None:
    """No script, font or picture of a page comes from elsewhere."""
    found = [
        f"{path.relative_to(site)}: {each[0]}"
        for path in [*site.rglob("*.html"), *site.rglob("*.css")]
        for each in FETCHED.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_reader_searches_and_looks(address: str) -> None:
    """A flag is found by the search, drawings have a size, and only this machine is asked."""
    try:
        with chromium() as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            asked: list[str] = []
            wrong: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            page.on("console", lambda told: wrong.append(told.text) if told.type == "error" else 0)
            page.goto(f"{address}/concepts.html")
            drawings = page.locator("svg.drawing")
            assert drawings.count() == 5
            for number in range(5):
                shape = drawings.nth(number).bounding_box()
                assert shape is not None
                assert shape["height"] > 50
            page.locator("input[name=query]").click()
            page.locator("input[name=query]").press_sequentially("max-delete")
            # While one types there are results of what was typed so far.
            found = page.locator("a.md-search-result__link[href*='sync-two-buckets']")
            found.first.wait_for(state="attached", timeout=60_000)
            assert wrong == []
            assert [url for url in asked if not url.startswith(address)] == []
    except Unavailable as error:
        pytest.skip(f"Chromium cannot be had: {error}")


def test_what_is_copied_can_be_pasted(address: str) -> None:
    """The button of a block of commands gives what is to be typed, and nothing else."""
    try:
        with chromium() as browser:
            context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
            page = context.new_page()
            page.goto(f"{address}/quickstart/objects.html")
            block = page.locator(".highlight", has_text="--if-not-exists").first
            block.hover()
            block.locator("button[data-md-type=copy], button.md-clipboard").first.click()
            page.wait_for_function(
                "async () => (await navigator.clipboard.readText()) !== ''", timeout=60_000
            )
            copied = page.evaluate("navigator.clipboard.readText()")
    except Unavailable as error:
        pytest.skip(f"Chromium cannot be had: {error}")
    assert [line.rstrip() for line in copied.splitlines() if line.strip()] == [
        "calque cp site/about.txt notes.txt",
        "calque cp site/about.txt notes.txt --if-not-exists",
        "calque ls -l backup/site/",
        "calque cat notes.txt",
    ]
