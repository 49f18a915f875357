"""Text of users in a real browser: whatever it holds, it is seen, in its place, and never runs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

import calque
from calque.console.text import shell_line
from calque.ledger.job_progress import Failure, Progress, note_progress
from calque.ledger.job_record import Job, Span
from calque.ledger.jobs import begin_job, end_job, remove_job
from tests.console.test_browser import Watched, check_shown, expect, signed_in
from tests.console.world import IMAGE, World, console_world
from tests.servers.chromium import axe

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = {
    "script": ("<script>document.title='run'<\\script>",) * 2,
    "attribute": (f'">{IMAGE}',) * 2,
    "backwards": ("invoice\u202egnp.exe", r"invoice\u202egnp.exe"),
    "lines": ("one\ntwo\x1b[31m", r"one\ntwo\x1b[31m"),
    "long": ("k" * 230, "k" * 230),
}
"""What is stored, and what is to be seen of it. A file's name has at most 255 bytes."""

LONGEST = "n" * 1000


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A console of their own: the tests of others count what is there."""
    with console_world(tmp_path_factory.mktemp("hostile")) as made:
        yield made


@pytest.fixture(scope="module")
def tab(browser: Browser, world: World) -> Iterator[Watched]:
    """One tab for all; nothing went wrong in it."""
    with signed_in(browser, world) as context:
        watched = Watched(context.new_page(), world)
        yield watched
        watched.check()


def look(tab: Watched, path: str, *seen: str) -> None:
    """A page says all of that, is no wider than a narrow window, and nothing of it ran."""
    page = tab.go(path)
    for text in seen:
        expect(page.get_by_text(text).first).to_be_visible()
    page.set_viewport_size({"width": 400, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400, path
    assert page.title() != "run"
    assert "\u202e" not in page.inner_text("body")


@pytest.mark.parametrize("kind", NAMES)
def test_objects_and_what_is_known_of_them(tab: Watched, world: World, kind: str) -> None:
    """In lists, in paths, in questions, as metadata and tags; renamed from the form as it is."""
    name, seen = NAMES[kind]
    metadata = {name[:100]: name, f"calque:tag:{name[:100]}": name, "calque:content_type": name}
    world.project.upload("photos", f"hostile/{kind}/{name}/{name}", b"1", metadata=metadata)
    folder = quote(f"photos/hostile/{kind}/{name}/", safe="")
    look(tab, f"/objects?path={folder}", seen)
    look(tab, f"/folder?path={folder}", seen)
    look(tab, f"/delete?path={folder}&whole=yes", seen)
    look(tab, f"/object?path={folder}{quote(name, safe='')}", seen, f"Metadata {seen[:90]}")
    if "\n" in name:  # a field of a form has one line
        return
    new = tab.page.get_by_label("New name")
    new.fill(f"{new.input_value()}.copy")
    tab.page.get_by_role("button", name="Copy", exact=True).click()
    tab.page.get_by_text(f"{seen}.copy").first.wait_for()
    found = [each.key for each in world.project.list_objects("photos", f"hostile/{kind}/")]
    assert f"hostile/{kind}/{name}/{name}.copy" in found


def test_all_of_them_in_one_list(tab: Watched, world: World) -> None:
    """As readable as any other folder, by anybody, dark and light."""
    for stored, _ in NAMES.values():
        world.project.upload("photos", f"list/{stored}", b"1")
    look(tab, "/objects?path=photos%2Flist%2F", *(seen for _, seen in NAMES.values()))
    check_shown(tab.page, "/hostile-objects", axe())


def test_the_longest_name_has_room(tab: Watched, world: World) -> None:
    """A thousand letters without a blank are no wider than a narrow window."""
    world.project.upload("photos", LONGEST, b"1")
    look(tab, "/objects?path=photos%2Fn", LONGEST)
    look(tab, f"/object?path=photos%2F{LONGEST}", LONGEST)
    world.project.delete_object("photos", LONGEST)


@pytest.mark.parametrize("kind", NAMES)
def test_loads_their_files_and_their_errors(
    tab: Watched, world: World, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a file and of its table, a value that was rejected, and the column's name."""
    name, seen = NAMES[kind]
    # What a table's library cannot read in a path is refused before there is a load.
    place = "".join(letter for letter in name if letter.isprintable() and letter != "\\")
    stage, table = tmp_path / "stage", tmp_path / place
    stage.mkdir()
    quoted = name.replace('"', '""')
    (stage / f"{name}.csv").write_text(f'id,amount\n1,10\n2,"{quoted}"\n')
    monkeypatch.setenv("CALQUE_LEDGER_URL", str(world.folder / "ledger.db"))
    columns = "id BIGINT, amount BIGINT"
    report = calque.load(str(stage), into=str(table), schema=columns, on_error="continue")
    assert report.rows_loaded == 1
    look(tab, f"/load?id={report.load_ids[0]}", f"{seen}.csv")
    if kind == "attribute":
        check_shown(tab.page, "/hostile-load", axe())
    row = tab.page.get_by_role("region", name="Rejected rows").locator("tbody tr").first
    expect(row.locator("td").nth(4)).to_have_text(seen)
    tab.page.get_by_role("link", name="All loads of").click()
    expect(tab.page.get_by_role("heading", level=1)).to_contain_text(place)
    look(tab, "/loads", place)
    look(tab, "", place)


@pytest.mark.parametrize("kind", NAMES)
def test_jobs_and_what_failed_in_them(tab: Watched, world: World, kind: str) -> None:
    """Source, target, the names of failures and their words; on the overview, too."""
    name, seen = NAMES[kind]
    job = Job(
        f"20260108T000000-{kind}",
        "sync",
        f"s3://a/{name}",
        f"s3://b/{name}",
        kind,
        {},
        owner="x/1/1",
    )
    begun = begin_job(world.ledger, job, [Span()], 600.0)
    try:
        failures = [Failure(name.encode(), "DataError", name)]
        note_progress(world.ledger, begun, Progress(spans=[], totals={}, failures=failures))
        look(tab, "/jobs", seen)
        look(tab, f"/job?id={job.job_id}", f"s3://a/{seen}", f"s3://b/{seen}")
        row = tab.page.locator("tbody tr", has_text="DataError").locator("td")
        expect(row.nth(0)).to_have_text(seen)
        expect(row.nth(2)).to_have_text(seen)
        end_job(world.ledger, begun, "PARTLY", name)
        look(tab, "", f"s3://a/{seen}")
    finally:
        remove_job(world.ledger, job.job_id)


@pytest.mark.parametrize("kind", NAMES)
def test_keys_what_they_are_for_and_where(tab: Watched, world: World, kind: str) -> None:
    """By the form: listed as text, and revoked."""
    name, seen = NAMES[kind]
    page = tab.go("/keys")
    name, seen = name.replace("\n", " "), seen.replace(r"\n", " ")  # a field has one line
    page.get_by_label("What it is for").fill(name)
    page.get_by_role("button", name="Make it").click()
    expect(page.locator(".secret")).to_have_count(2)
    look(tab, "/keys", seen)
    tab.page.locator("tr", has_text=seen).get_by_role("button", name="Revoke").click()
    expect(tab.page.locator("tr", has_text=seen)).to_have_count(0)


@pytest.mark.parametrize("name", [*(stored for stored, _ in NAMES.values()), "b\udce9\u00a0'\\"])
def test_a_command_on_a_page_is_seen_and_means_the_name(name: str) -> None:
    """All of it is printable, and a shell that reads it has the very bytes."""
    line = shell_line("printf", "%s", name)
    assert line.isprintable()
    done = subprocess.run(["bash", "-c", line], capture_output=True, env={"LC_ALL": "C.UTF-8"})
    assert done.stdout == name.encode("utf-8", "surrogateescape")
