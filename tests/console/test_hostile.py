"""Requests that no page of ours would make: each is refused in our words, none is a failure."""

from __future__ import annotations

import asyncio
import threading
from http.client import HTTPConnection
from urllib.parse import quote, urlsplit

import pytest

from calque.console.guard import LARGEST_SIGN_IN
from calque.console.live import Live
from calque.ledger.job_progress import Failure, Progress, note_progress
from calque.ledger.job_record import Job, Span
from calque.ledger.jobs import begin_job, remove_job, stop_job
from tests.console.test_keys import ALL
from tests.console.test_objects import at
from tests.console.world import SCRIPT, Visitor, World

DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/loads?table={DIGITS}", 400),
        ("/loads?table=%D9%A1", 400),
        ("/load?id=%00", 404),
        ("/load?id=%FF%FE", 404),
        ("/job?id=%00", 404),
        ("/job?id=%25", 404),
        (f"/objects?deleted={DIGITS}", 200),
        ("/objects?path=%2Fno-bucket", 400),
        ("/objects?path=..%2F..%2Fetc%2Fpasswd", 400),
        ("/object?path=photos%2F..%2F..%2Fetc%2Fpasswd", 404),
        ("/download?path=photos%2F%00", 404),
        ("/object?path=photos%2F" + "k" * 2000, 400),
        ("/static/..%2f..%2fsite.py", 404),
        ("/static/%5c..%5csite.py", 404),
        ("/upkeep/run", 405),
    ],
)
def test_addresses_that_nobody_typed(visitor: Visitor, path: str, status: int) -> None:
    """Numbers without end, NUL, bytes that are no UTF-8, ways out of a folder."""
    assert visitor.get(path).status_code == status


@pytest.mark.parametrize(
    ("path", "form"),
    [
        (at("object/link", "photos/2026/a.txt"), {"hours": DIGITS}),
        (at("object/link", "photos/2026/a.txt"), {"hours": "٣"}),
        ("/keys/make", {**ALL, "until": "0001-01-01T00:00+14:00"}),
        ("/keys/make", {**ALL, "until": "9999-12-31T23:59-14:00"}),
        (at("object/copy", "photos/2026/a.txt"), {"to": "photos/" + "k" * 2000}),
        (at("folder/copy", "photos/2026/"), {"to": "//"}),
    ],
)
def test_forms_that_nobody_filled_in(visitor: Visitor, path: str, form: dict[str, str]) -> None:
    """What cannot be is said to be wrong."""
    assert visitor.post(path, data=form).status_code == 400


def test_a_stranger_cannot_fill_the_memory(world: World) -> None:
    """A form of one who is not signed in is read up to what a token needs; the console lives on."""
    stranger = world.visitor(signed_in=False)
    large = {"token": "x" * (LARGEST_SIGN_IN + 1)}
    refused = stranger.session.post(f"{world.url}/sign-in", data=large, timeout=60)
    assert refused.status_code == 413
    assert "too large" in refused.text
    assert stranger.sign_in("wrong").status_code == 403


def test_names_that_are_no_utf8_are_shown(visitor: Visitor, world: World) -> None:
    """A job of files whose names are any bytes, with an error that is a script."""
    job = Job("20260105T000000-bytes", "sync", "a\udcff", "b", "bytes", {}, owner="x/1/1")
    begun = begin_job(world.ledger, job, [Span()], 600.0)
    failures = [Failure(b"caf\xe9/" + SCRIPT.encode(), "DataError", SCRIPT)]
    note_progress(world.ledger, begun, Progress(spans=[], totals={}, failures=failures))
    shown = visitor.get(f"/job?id={job.job_id}")
    assert shown.status_code == 200
    assert r"caf\udce9/" in shown.text
    assert SCRIPT not in shown.text
    assert visitor.json(f"/job?id={job.job_id}")["failures"][0]["error"] == "DataError"
    stop_job(world.ledger, job.job_id, "a test")
    remove_job(world.ledger, job.job_id)


def test_metadata_and_tags_are_the_users_text(visitor: Visitor, world: World) -> None:
    """Names and values; a content type, too."""
    stored = {f"x{SCRIPT}": SCRIPT, f"calque:tag:{SCRIPT}": SCRIPT, "calque:content_type": SCRIPT}
    world.project.upload("photos", "meta/a", b"1", metadata=stored)
    shown = visitor.get(at("object", "photos/meta/a"))
    assert shown.status_code == 200
    assert SCRIPT not in shown.text
    assert shown.text.count("&lt;script&gt;") >= 4


@pytest.mark.parametrize("name", ["items", "copy", "keys", "get"])
def test_names_that_python_has_for_dictionaries(visitor: Visitor, world: World, name: str) -> None:
    """As keys of metadata and of tags they are text like any other."""
    stored = {name: "told", f"calque:tag:{name}": "told too"}
    world.project.upload("photos", f"meta/{name}", b"1", metadata=stored)
    shown = visitor.get(at("object", f"photos/meta/{name}"))
    assert shown.status_code == 200
    assert f"<dt>Metadata {name}</dt><dd>told</dd>" in shown.text
    assert f"<dt>Tag {name}</dt><dd>told too</dd>" in shown.text


def test_a_change_by_another_sites_form_is_refused_without_a_session(world: World) -> None:
    """The cookie does not come along from another site, so there is nothing to abuse."""
    stranger = world.visitor(signed_in=False)
    path = f"{world.url}{at('delete', 'photos/2026/a.txt')}"
    assert stranger.session.post(path, data={"csrf": "x"}, timeout=60).status_code == 401


def test_one_who_leaves_at_once_is_not_asked_for(world: World) -> None:
    """A page that closes before its first figure leaves nobody behind who would be asked for."""

    async def leave() -> int:
        live = Live([dict])
        events = live.events(lambda: True)
        await anext(events)
        await events.aclose()  # type: ignore[attr-defined]
        return live._watchers

    assert asyncio.run(leave()) == 0


def test_one_who_does_not_read_hinders_nobody(visitor: Visitor, world: World) -> None:
    """A page that stays open and takes nothing: pages are served, figures are told to others."""
    cookie = "; ".join(f"{each.name}={each.value}" for each in visitor.session.cookies)
    lazy = [HTTPConnection(urlsplit(world.url).netloc, timeout=60) for _ in range(20)]
    for each in lazy:
        each.request("GET", "/console/live", headers={"Cookie": cookie})
    assert visitor.get("/jobs").status_code == 200
    told = threading.Event()
    with visitor.get("/live", stream=True) as stream:
        for line in stream.iter_lines():
            if line.startswith(b"data: "):
                told.set()
                break
    assert told.is_set()
    for each in lazy:
        each.close()


def test_a_signed_out_page_is_told_nothing_more(world: World) -> None:
    """Its stream of figures ends."""
    visitor = world.visitor()
    with visitor.get("/live", stream=True) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith(b"retry:")
        visitor.post("/sign-out")
        rest = [line for line in lines if line.startswith(b"id:")]
    assert len(rest) <= 3


def test_errors_quote_what_was_asked_as_text(visitor: Visitor) -> None:
    """Names in messages of errors are shown and never run."""
    for path in (f"/objects?path={quote(SCRIPT)}", f"/job?id={quote(SCRIPT)}"):
        answer = visitor.get(path)
        assert answer.status_code in (400, 404)
        assert SCRIPT not in answer.text
