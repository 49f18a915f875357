"""What goes on while one looks: a load, a node that leaves, a server that says nothing any more."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from calque.console.server import serve_console
from calque.console.site import Site
from calque.console.store_pages.section import store_section
from calque.ledger.job_record import Job
from calque.ledger.jobs import begin_job, end_job
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.nodes.erasure import Redundancy
from calque.store.project import Project
from calque.store.upkeep.exit import exit_node, exit_progress
from calque.store.upkeep.node_states import find_node
from calque.store.uplink.session import Session
from tests.command import run_command
from tests.console.test_browser import check_shown, expect, signed_in
from tests.console.world import World, console_world
from tests.program import COMMAND, Program
from tests.servers.chromium import axe
from tests.servers.cutting import CuttingProxy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A console of their own: the tests of others count what is there."""
    with console_world(tmp_path_factory.mktemp("way")) as made:
        yield made


@pytest.fixture(scope="module")
def context(browser: Browser, world: World) -> Iterator[BrowserContext]:
    """One browser for all."""
    with signed_in(browser, world) as made:
        yield made


@contextmanager
def held_load(world: World, folder: Path) -> Iterator[Program]:
    """A load that stands still once it has written, and goes on or is killed."""
    (folder / "stage").mkdir()
    (folder / "stage/a.csv").write_text("id\n1\n2\n")
    environment = {
        **os.environ,
        "CALQUE_LEDGER_URL": str(world.folder / "ledger.db"),
        "CALQUE_FAULT": "write.after@1:pause=600",
    }
    load = Program(COMMAND, "load", "stage/", "--into", "./flying", cwd=folder, env=environment)
    try:
        yield load
    finally:
        load.send_signal(signal.SIGCONT)
        load.communicate()


def test_a_load_in_flight(context: BrowserContext, world: World, tmp_path: Path) -> None:
    """It stands among those that run, and is counted live, until it ends."""
    overview = context.new_page()
    overview.goto(world.url)
    shown = overview.locator("[data-live='loads running']")
    expect(shown).to_have_text("0")
    with held_load(world, tmp_path) as load:
        expect(shown).to_have_text("1")
        page = context.new_page()
        page.goto(f"{world.url}/loads")
        row = page.get_by_role("region", name="Running now").locator("tbody tr")
        expect(row).to_contain_text("flying")
        expect(row.locator("td").nth(3)).to_have_text("1")
        row.get_by_role("link").first.click()
        expect(page.locator(".figure", has_text="State")).to_contain_text("WRITING")
        expect(page.get_by_text("1 file is being loaded")).to_be_visible()
        check_shown(page, "/load-in-flight", axe())
    assert load.returncode == 0
    expect(shown).to_have_text("0")
    page.reload()
    expect(page.locator(".figure", has_text="State")).to_contain_text("COMMITTED")


def test_a_load_that_died(context: BrowserContext, world: World, tmp_path: Path) -> None:
    """It does not look as if it ran: it is among the errors, with the command to run again."""
    page = context.new_page()
    page.goto(world.url)
    shown = page.locator("[data-live='loads running']")
    with held_load(world, tmp_path) as load:
        expect(shown).to_have_text("1")
        load.kill()
        load.wait()
        expect(shown).to_have_text("0")
    page.reload()
    told = page.locator(".troubles li", has_text="DIED")
    expect(told).to_contain_text("calque sql ")
    told.get_by_role("link").click()
    expect(page.get_by_text("Its process is gone.")).to_be_visible()
    expect(page.get_by_text("1 file was being loaded.")).to_be_visible()
    check_shown(page, "/load-died", axe())
    environment = {**os.environ, "CALQUE_LEDGER_URL": str(world.folder / "ledger.db")}
    words = ("load", "stage/", "--into", "./flying")
    again = run_command(*words, cwd=tmp_path, env=environment)
    assert again.returncode == 0, again.stderr
    page.reload()
    expect(page.locator(".figure", has_text="State")).to_contain_text("ABORTED")


def test_a_connection_that_broke_comes_back(context: BrowserContext, world: World) -> None:
    """Without a click: figures change again once the server is reached again."""
    with CuttingProxy(urlsplit(world.url).netloc) as proxy:
        page = context.new_page()
        page.goto(f"http://{proxy.address}/console")
        shown = page.locator("[data-live='jobs running']")
        before = int(shown.inner_text())
        for number in range(2):
            job = Job(f"20260103T00000{number}-again", "sync", "a", "b", "again", {}, owner="x/1/1")
            begun = begin_job(world.ledger, job, [], 600.0)
            expect(shown).to_have_text(str(before + 1))
            end_job(world.ledger, begun, "DONE")
            expect(shown).to_have_text(str(before))
            proxy.cut()
        page.close()


def test_figures_change_while_one_looks(context: BrowserContext, world: World) -> None:
    """A tree that begins is counted on a page that is open, and one that ends as well."""
    page = context.new_page()
    page.goto(world.url)
    shown = page.locator("[data-live='jobs running']")
    before = int(shown.inner_text())
    job = Job("20260102T000000-now", "sync", "a", "b", "now", {}, owner="somewhere/else/1")
    begun = begin_job(world.ledger, job, [], 600.0)
    expect(shown).to_have_text(str(before + 1))
    end_job(world.ledger, begun, "DONE")
    expect(shown).to_have_text(str(before))


def test_ten_open_tabs(context: BrowserContext, world: World) -> None:
    """A browser opens six connections to a server: all tabs open, and all are told."""
    tabs = [context.new_page() for _ in range(10)]
    try:
        for page in tabs:
            page.goto(world.url)
        shown = [page.locator("[data-live='jobs running']") for page in tabs]
        before = int(shown[0].inner_text())
        job = Job("20260104T000000-ten", "sync", "a", "b", "ten", {}, owner="x/1/1")
        begun = begin_job(world.ledger, job, [], 600.0)
        for each in shown:
            expect(each).to_have_text(str(before + 1))
        tabs.pop(0).close()  # the one that listened: another takes its place
        end_job(world.ledger, begun, "DONE")
        for each in shown[1:]:
            expect(each).to_have_text(str(before))
    finally:
        for page in tabs:
            page.close()


def test_figures_that_stand_still_are_said_to_be_old(context: BrowserContext, world: World) -> None:
    """A server that is silent, as after a loss of power; and all is well once it is back."""
    with CuttingProxy(urlsplit(world.url).netloc) as proxy:
        page = context.new_page()
        page.goto(f"http://{proxy.address}/console")
        notice = page.locator("#silence")
        expect(page.locator("[data-live='jobs running']")).to_have_text("0")
        expect(notice).to_be_hidden()
        proxy.silence()
        expect(notice).to_be_visible()
        expect(notice).to_be_hidden()  # a new connection was made without a click
        page.close()


def test_a_page_of_a_session_that_ended_says_so(browser: Browser, world: World) -> None:
    """Signed out in one tab, the other one does not look as if nothing happened."""
    with signed_in(browser, world) as context:
        left, other = context.new_page(), context.new_page()
        left.goto(world.url)
        other.goto(f"{world.url}/keys")
        other.get_by_role("button", name="Sign out").click()
        expect(left.get_by_text("you are signed out")).to_be_visible()
        left.reload()
        expect(left.get_by_label("One-time token")).to_be_visible()


def test_a_node_that_leaves(browser: Browser, tmp_path: Path) -> None:
    """How many of its pieces are moved and left is seen live, whoever empties it."""
    roots = [str(tmp_path / f"disk{number}") for number in range(5)]
    options = StoreOptions(redundancy=Redundancy.of(2, 4), nodes=roots)
    store = EmbeddedStore.create(tmp_path / "data", options)
    grant = store.grant()
    session = Session(store.endpoint, bytes(grant.api_key), grant.encryption, nodes=store.nodes)
    project = Project(session, grant, owns=store)
    project.create_bucket("photos")
    for number in range(5):
        project.upload("photos", str(number), os.urandom(20_000))
    go_on, node = threading.Event(), store.nodes.direct()[0].id.hex()
    record = find_node(store, node)

    def hold_once_counted(*_: int) -> None:
        if exit_progress(store.endpoint.database, record) is not None:
            go_on.wait(300)

    emptied = threading.Thread(
        target=exit_node, args=(store, node), kwargs={"tell": hold_once_counted}
    )
    try:
        site = Site([store_section(store, grant)])
        with serve_console(site) as served:
            seen = World(store, project, None, tmp_path, served)  # type: ignore[arg-type]
            with signed_in(browser, seen) as context:
                page = context.new_page()
                page.goto(f"{served.url}/upkeep")
                state, left, moved = (
                    page.locator(f"[data-live='node {record.name} {word}']")
                    for word in ("state", "left", "moved")
                )
                expect(state).to_have_text("ok")
                expect(left).to_have_text("—")
                emptied.start()
                expect(state).to_have_text("exiting")
                expect(moved).to_have_text("0")
                running = page.locator("[data-live='upkeep exit']")
                expect(running).to_have_text("running")
                expect(left).to_have_text(re.compile("[1-9]"))
                go_on.set()
                expect(state).to_have_text("gone")
                expect(moved).to_have_text("—")
                expect(running).to_have_text("")
    finally:
        go_on.set()
        emptied.join()
        project.close()
