"""Copies of one object in the console: made by the command line, seen, gone on with, given up."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from calque.transfer.jobs.single_copies import WORTH_A_NOTE, list_copies
from tests.console.test_browser import check_shown, expect, signed_in
from tests.console.world import Visitor, World
from tests.frozen import wake_with
from tests.program import COMMAND, Program
from tests.servers.chromium import axe

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAME, SIZE = "<b>big file", 4 * WORTH_A_NOTE


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own, for the commands and for the console."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Begins a copy in tiny steps, held (SIGSTOP) once it is noted, and can be resumed if asked."""
    (tmp_path / NAME).write_bytes(os.urandom(SIZE))
    begun = []

    def begin(*options: str) -> Program:
        names = [NAME, "copy"]
        words = [*options, *names] if "--" in options else [*names, "--chunk", "1KiB", *options]
        tiny = ["--chunk", "1KiB"] if "--" in options else []
        process = Program(COMMAND, "cp", *tiny, *words, cwd=tmp_path)
        begun.append(process)
        folder = tmp_path / "state" / "calque" / "copies"
        wait_until(
            lambda: any(folder.glob("*.json")) if options else bool(list_copies()),
            unless=lambda: process.poll() is not None,
        )
        process.send_signal(signal.SIGSTOP)
        assert process.poll() is None, "the copy was over too soon"
        return process

    yield begin
    for each in begun:
        each.kill()
        each.wait()
        each.close()


def wait_until(is_so: Callable[[], bool], unless: Callable[[], bool] = lambda: False) -> None:
    end = time.monotonic() + 120
    while not (is_so() or unless()):
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


def copies_in(visitor: Visitor) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = visitor.json("/jobs")["copies"]
    return found


def test_a_copy_under_way_is_shown(
    visitor: Visitor, held: Callable[..., Program], tmp_path: Path
) -> None:
    """From where to where, how far, by which process; not longer than it lives."""
    process = held()
    (told,) = copies_in(visitor)
    assert told["state"] == "RUNNING"
    assert told["source"] == f"file://{tmp_path}/{NAME}"
    assert told["target"] == f"file://{tmp_path}/copy"
    assert 0 <= told["bytes"] < told["total"] == SIZE
    assert str(process.pid) in told["who"]
    assert "&lt;b&gt;big file" in visitor.get("/jobs").text
    assert visitor.post(f"/copy/resume?id={told['copy']}").status_code == 409
    assert visitor.post(f"/copy/abort?id={told['copy']}").status_code == 409
    process.kill()
    process.wait()
    assert copies_in(visitor) == [], "without --resume there is nothing to go on with"


def test_one_that_was_left_is_gone_on_with(
    visitor: Visitor, held: Callable[..., Program], tmp_path: Path
) -> None:
    """By the command that began it, in its folder; then it is there, and gone from the page."""
    process = held("--resume")
    process.kill()
    process.wait()
    (told,) = copies_in(visitor)
    assert told["state"] == "STOPPED"
    assert told["resume"] == f"calque cp '{NAME}' copy --chunk 1KiB --resume"
    assert visitor.post(f"/copy/resume?id={told['copy']}").status_code == 200
    wait_until(lambda: copies_in(visitor) == [])
    assert (tmp_path / "copy").read_bytes() == (tmp_path / NAME).read_bytes()
    assert visitor.post(f"/copy/resume?id={told['copy']}").status_code == 404


def test_one_that_was_left_is_given_up(
    visitor: Visitor, held: Callable[..., Program], tmp_path: Path
) -> None:
    """Nothing of it is left, neither here nor beside the target."""
    process = held("--resume", "--")
    wake_with(process.pid, signal.SIGINT)
    process.wait()
    (told,) = copies_in(visitor)
    visitor.post(f"/copy/abort?id={told['copy']}")
    wait_until(lambda: copies_in(visitor) == [])
    assert sorted(os.listdir(tmp_path)) == [NAME, "state"]


def test_by_mouse(
    browser: Browser, world: World, held: Callable[..., Program], tmp_path: Path
) -> None:
    """In a browser: told live, seen with its command, aborted, begun again, resumed, and gone."""
    with signed_in(browser, world) as context:
        page = context.new_page()
        for button, there in (("Abort", False), ("Resume", True)):
            process = held("--resume")
            page.goto(f"{world.url}/jobs")
            expect(page.get_by_text("RUNNING")).to_be_visible()
            process.kill()
            process.wait()
            expect(page.get_by_text("STOPPED")).to_be_visible()
            page.reload()
            row = page.get_by_role("region", name="Copies of one object").locator("tbody tr")
            expect(row).to_contain_text("<b>big file")
            expect(row).to_contain_text("--resume")
            if button == "Abort":
                check_shown(page, "/copy-left", axe())
            row.get_by_role("button", name=button).click()
            wait_until(lambda: list_copies() == [])
            page.reload()
            expect(row).to_have_count(0)
            assert (tmp_path / "copy").exists() is there
