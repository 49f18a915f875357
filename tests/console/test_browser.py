"""The console in a real browser: every page, by mouse and keyboard, and what it must never do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import pytest

from calque.ledger.job_record import Job
from calque.ledger.jobs import begin_job, remove_job
from tests.console.test_jobs import leave_job
from tests.console.world import IMAGE, SCRIPT, World
from tests.servers.chromium import axe

PICTURES = os.environ.get("CALQUE_CONSOLE_PICTURES")
"""A folder for pictures of the pages, for whoever changes them."""

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

playwright = pytest.importorskip("playwright.sync_api", reason="there is no Playwright")
expect = playwright.expect
expect.set_options(timeout=30_000)


class Watched:
    """A tab, and all that went wrong in it."""

    def __init__(self, page: Page, world: World) -> None:
        self.page, self._world = page, world
        self.errors: list[str] = []
        self.hosts: set[str] = set()
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._note_request)

    def go(self, path: str = "") -> Page:
        self.page.goto(self._world.url + path)
        return self.page

    def check(self) -> None:
        """Nothing went wrong, and nobody else was asked."""
        assert self.errors == []
        assert self.hosts == {urlsplit(self._world.url).netloc}

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _note_request(self, request: Request) -> None:
        self.hosts.add(urlsplit(request.url).netloc)


@contextmanager
def signed_in(browser: Browser, world: World) -> Iterator[BrowserContext]:
    """A signed-in browser: by the address that the command prints, as people do it."""
    made = browser.new_context(reduced_motion="reduce")
    made.set_default_timeout(30_000)
    page = made.new_page()
    page.goto(world.served.sign_in_url())
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(world.url)
    page.close()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def context(browser: Browser, world: World) -> Iterator[BrowserContext]:
    """One for all tests here."""
    with signed_in(browser, world) as made:
        yield made


@pytest.fixture
def tab(context: BrowserContext, world: World) -> Iterator[Watched]:
    """A new tab; at the end of the test nothing has gone wrong in it."""
    page = context.new_page()
    watched = Watched(page, world)
    yield watched
    page.close()
    watched.check()


def pages_of(tab: Watched) -> list[str]:
    """The addresses of the navigation."""
    links = tab.go().get_by_role("navigation", name="Sections").get_by_role("link").all()
    return [str(link.get_attribute("href")).removeprefix("/console") for link in links]


def test_every_page_of_the_navigation(tab: Watched) -> None:
    """Each opens without an error, says its command, and fits into 400 pixels, dark and light."""
    script = axe()
    for path in pages_of(tab):
        check_page(tab, path, script)


def check_page(tab: Watched, path: str, script: str) -> None:
    page = tab.go(path)
    expect(page.get_by_text("The same on the command line")).to_be_visible()
    check_shown(page, path, script)


def check_shown(page: Page, path: str, script: str) -> None:
    """What a tab shows: wide and light, narrow and dark."""
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for scheme, width in (("light", 1280), ("dark", 400)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{path} is {wide} pixels wide in {width}"
        if PICTURES:
            name = path.strip("/").partition("?")[0].replace("/", "-") or "overview"
            Path(PICTURES).mkdir(exist_ok=True)
            page.screenshot(path=f"{PICTURES}/{name}-{scheme}-{width}.png", full_page=True)
        # The policy of the page forbids foreign scripts; the tool comes in beside it.
        page.evaluate(script)
        found = page.evaluate("axe.run().then(r => r.violations)")
        serious = [
            (each["id"], [node["html"] for node in each["nodes"]][:3])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == [], path
    page.emulate_media(color_scheme=None)
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_load_from_the_overview_to_its_first_error(tab: Watched) -> None:
    """Clicked through: the load, its rejected row with line and column, the command; names that
    are scripts are shown and never run."""
    page = tab.go()
    page.get_by_role("heading", name="Errors of the last day").wait_for()
    expect(page.locator(".chart", has_text="Rows loaded")).to_contain_text("at most 3 on ")
    page.locator(".troubles a").first.click()
    row = page.get_by_role("region", name="Rejected rows").locator("tbody tr").first
    expect(row.locator("td").nth(1)).to_have_text("3")
    expect(row.locator("td").nth(2)).to_have_text("amount")
    expect(row.locator("td").nth(4)).to_have_text("<b>no</b>")
    expect(page.get_by_text("calque sql").first).to_be_visible()
    assert page.title().endswith("· calque")
    page.get_by_role("link", name="All loads of").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("sales")


def test_objects_from_the_bucket_to_the_copy_graph(tab: Watched) -> None:
    """Folders are opened, a path is typed, an object shows its family; names never run."""
    page = tab.go("/objects")
    page.get_by_role("link", name="photos", exact=True).click()
    page.get_by_role("link", name="2026/", exact=True).click()
    expect(page.get_by_role("link", name=IMAGE, exact=True)).to_be_visible()
    expect(
        page.get_by_role("link", name="<script>document.title='run'</", exact=True)
    ).to_be_visible()
    page.get_by_label("Path: a folder").fill("photos/copies/fi")
    page.get_by_role("button", name="Go").click()
    page.get_by_role("link", name="first.bin", exact=True).click()
    expect(page.get_by_text("This is a copy")).to_contain_text("Its deletion would free 0 B")
    page.get_by_role("link", name="photos/2026/big.bin").click()
    expect(page.get_by_text("This is the original")).to_contain_text("photos/copies/first.bin")
    tab.go(f"/object?path={quote(f'photos/2026/{SCRIPT}', safe='')}")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"photos/2026/{SCRIPT}")
    assert page.title() == f"photos/2026/{SCRIPT} · calque"


def test_a_file_is_uploaded_downloaded_and_deleted(tab: Watched, tmp_path: Path) -> None:
    """By the form of the folder; the download is a file; the deletion says how many and asks."""
    page = tab.go("/objects?path=photos%2Fuploads%2F")
    sent = {"name": "page.html", "mimeType": "text/html", "buffer": b"<script>1</script>"}
    page.get_by_label("Upload into this folder").set_input_files(sent)  # type: ignore[arg-type]
    page.get_by_role("button", name="Upload", exact=True).click()
    page.get_by_role("link", name="page.html", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "page.html"
    assert Path(download.value.path()).read_bytes() == b"<script>1</script>"
    page.get_by_role("link", name="Delete…").click()
    expect(page.get_by_role("alert")).to_contain_text("1 object, 18 B")
    page.get_by_role("button", name="Delete 1 object").click()
    expect(page.get_by_role("status")).to_have_text("1 deleted.")
    expect(page.get_by_text("Nothing here.")).to_be_visible()


def test_files_dropped_on_a_folder_are_uploaded(tab: Watched, world: World) -> None:
    """Anywhere on its page; both are there, and the page did not turn into one of them."""
    page = tab.go("/objects?path=photos%2Fdropped%2F")
    page.evaluate(
        """() => {
          const brought = new DataTransfer();
          brought.items.add(new File(["one"], "one.txt"));
          brought.items.add(new File(["two"], "<b>two.txt"));
          const tell = (kind) => document.querySelector("h1").dispatchEvent(
            new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: brought}));
          tell("dragover");
          tell("drop");
        }"""
    )
    expect(page.get_by_role("link", name="one.txt", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="<b>two.txt", exact=True)).to_be_visible()
    assert world.project.download("photos", "dropped/one.txt").read() == b"one"


def test_a_folder_is_renamed(tab: Watched, world: World) -> None:
    """From the list of its parent: the count is seen before the button is pressed."""
    world.project.upload("photos", "trips/rome/a.txt", b"1")
    world.project.upload("photos", "trips/rome/b.txt", b"2")
    page = tab.go("/objects?path=photos%2Ftrips%2F")
    page.get_by_role("link", name="Copy, rename rome").click()
    expect(page.get_by_text("2 objects, 2 B.")).to_be_visible()
    page.get_by_label("New name of the folder").fill("photos/trips/roma/")
    page.get_by_role("button", name="Rename 2 objects").click()
    expect(page.get_by_role("link", name="b.txt", exact=True)).to_be_visible()
    found = [each.key for each in world.project.list_objects("photos", "trips/")]
    assert found == ["trips/roma/a.txt", "trips/roma/b.txt"]


def test_every_other_page(tab: Watched) -> None:
    """An object, a question before a deletion, a load, a job: as the pages of the navigation."""
    script = axe()
    load = tab.go("/loads").locator("a[href*='load?id=']").first.get_attribute("href")
    for path in (
        "/object?path=photos%2F2026%2Fbig.bin",
        "/objects?path=photos%2F2026%2F",
        "/delete?path=photos%2F2026%2F&whole=yes",
        "/folder?path=photos%2F2026%2F",
        str(load).removeprefix("/console"),
        "/job?id=20260101T000000-left",
    ):
        check_page(tab, path, script)


def test_a_job_is_gone_on_with_and_another_given_up(
    tab: Watched, world: World, tmp_path: Path
) -> None:
    """From the list, by its buttons; figures change by themselves until it is done."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first, second = leave_job(world, tmp_path / "one"), leave_job(world, tmp_path / "two")
    page = tab.go("/jobs")
    page.get_by_role("link", name=first.job_id, exact=True).click()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(f"[data-live='job {first.job_id} state']")).to_have_text("DONE")
    expect(page.locator(f"[data-live='job {first.job_id} copied']")).to_have_text("5")
    tab.go("/jobs")
    page.get_by_role("link", name=second.job_id, exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Abort").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs")
    expect(page.get_by_role("link", name=second.job_id)).to_have_count(0)


def test_a_running_job_is_stopped_from_its_page(tab: Watched, world: World) -> None:
    """Its button is there while it runs; then it is stopped, and says by whom."""
    job = Job("20260107T000000-run", "sync", "s3://a/", "s3://b/", "run", {}, owner="x/1/1")
    begin_job(world.ledger, job, [], 600.0)
    page = tab.go(f"/job?id={job.job_id}")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("stopped by the console")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    remove_job(world.ledger, job.job_id)


def test_pages_that_answer_a_form(tab: Watched) -> None:
    """A link, a new key: as readable as the others, by anybody, anywhere."""
    script = axe()
    page = tab.go("/object?path=photos%2F2026%2Fbig.bin")
    page.get_by_role("button", name="Make a link").click()
    expect(page.locator(".secret")).to_contain_text("X-Amz-Signature")
    check_shown(page, "/link", script)
    tab.go("/keys")
    page.get_by_role("button", name="Make it").click()
    expect(page.locator(".secret")).to_have_count(2)
    check_shown(page, "/new-key", script)


def test_the_sign_in_page_and_an_error(browser: Browser, world: World) -> None:
    """As readable as the others; a wrong token is said to be wrong."""
    context = browser.new_context()
    try:
        page, script = context.new_page(), axe()
        page.goto(world.url)
        check_shown(page, "/sign-in", script)
        page.get_by_label("One-time token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("This token is wrong")
        page.goto(world.served.sign_in_url())
        page.get_by_role("button", name="Sign in").click()
        page.goto(f"{world.url}/object?path=photos%2F{quote(SCRIPT, safe='')}")
        expect(page.get_by_role("alert")).to_contain_text(SCRIPT)
        check_shown(page, "/error", script)
        assert page.title() != "run"
    finally:
        context.close()


def test_a_key_is_shown_once(tab: Watched) -> None:
    """Made by the form, listed without its secret, revoked by its button."""
    page = tab.go("/keys")
    page.get_by_label("What it is for").fill(SCRIPT)
    page.get_by_label("delete", exact=True).uncheck()
    page.get_by_role("button", name="Make it").click()
    secret = page.locator(".secret").nth(1).inner_text()
    page.get_by_role("link", name="All keys").click()
    row = page.locator("tr", has_text=SCRIPT)
    expect(row).to_contain_text("read,write,list")
    assert secret not in page.content()
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text(SCRIPT)).to_have_count(0)


def test_a_service_is_run_now(tab: Watched) -> None:
    """Its report is there when the page is loaded again."""
    page = tab.go("/upkeep")
    page.get_by_role("button", name="Run fsck now").click()
    page.wait_for_url("**/upkeep#fsck")
    spot = page.locator("[data-live='upkeep fsck']")
    expect(spot).to_have_text("")
    page.reload()
    page.locator("section[aria-labelledby='fsck'] summary").click()
    expect(page.get_by_role("region", name="Reports of fsck")).to_contain_text("findings: 0")


def test_by_keyboard(tab: Watched) -> None:
    """The first key leads past the navigation; the sections are reached and opened by keys."""
    page = tab.go()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_role("link", name="Loads", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/loads")


def test_without_scripts_all_but_live_figures_works(browser: Browser, world: World) -> None:
    """Sign in, look, change something, sign out: forms and links are enough."""
    context = browser.new_context(java_script_enabled=False)
    try:
        tab = Watched(context.new_page(), world)
        page = tab.page
        page.goto(world.served.sign_in_url())
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Copies and trees").click()
        expect(page.get_by_text(SCRIPT).first).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("One-time token")).to_be_visible()
        tab.check()
    finally:
        context.close()
