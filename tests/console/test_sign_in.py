"""Nobody sees anything without a session, and no form of another page changes anything."""

from __future__ import annotations

import re
from http.client import HTTPConnection
from pathlib import Path

import pytest
import requests

from calque.console.ledger_pages.section import ledger_section
from calque.console.server import serve_console
from calque.console.sessions import LIFE, Sessions
from calque.console.site import Site
from tests.console.world import Visitor, World
from tests.store_client.test_tls import write_pair


def test_without_a_session_there_is_the_sign_in_page_and_nothing_else(world: World) -> None:
    """Every address leads to it; programs are told 401; what is served to all tells nothing."""
    stranger = world.visitor(signed_in=False)
    for path in ("", "/loads", "/load?id=x", "/jobs", "/nonsense", "/live"):
        answer = stranger.get(path)
        assert answer.url.endswith("/console/sign-in"), path
        assert "Sign in" in answer.text
        told = stranger.get(path, headers={"Accept": "application/json"})
        assert told.status_code == 401
        assert told.json()["error"]["kind"] == "PermissionDenied"
    assert stranger.session.post(f"{world.url}/sign-out", timeout=60).status_code == 401
    assert stranger.get("/static/console.css").status_code == 200
    for path in ("/static/../sessions.py", "/static/%2e%2e/sessions.py", "/static/../loads"):
        assert ask_as_written(world, path) == 404


def ask_as_written(world: World, path: str) -> int:
    """The status of a path that no client has tidied up."""
    connection = HTTPConnection(world.served.origin.partition("//")[2], timeout=60)
    connection.request("GET", f"/console{path}")
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_token_signs_one_browser_in(world: World) -> None:
    """It is used up by the first; a wrong one is refused and uses up nothing."""
    token = world.served.site.sessions.token
    first, second = (world.visitor(signed_in=False) for _ in range(2))
    assert second.sign_in("wrong").status_code == 403
    assert second.sign_in("").status_code == 403
    assert "Overview" in first.sign_in(token).text
    refused = second.sign_in(token)
    assert refused.status_code == 403
    assert "used already" in refused.text
    assert world.served.site.sessions.token != token


def test_the_cookie_is_kept_from_scripts_and_other_sites(world: World) -> None:
    """HttpOnly and SameSite=Strict, of a name that another port does not share."""
    visitor = world.visitor(signed_in=False)
    answer = visitor.session.post(
        f"{world.url}/sign-in",
        data={"token": world.served.site.sessions.token},
        allow_redirects=False,
        timeout=60,
    )
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert cookie.startswith(f"calque_console_{world.served.origin.rpartition(':')[2]}=")


def test_over_tls_the_cookie_is_for_tls_alone(tmp_path: Path) -> None:
    """It is not sent to whoever answers plain HTTP by the same name."""
    certificate, key = write_pair(tmp_path, "console")
    site = Site([ledger_section(lambda: None)])
    with serve_console(site, certificate=certificate, key=key) as served:
        assert served.url.startswith("https://")
        where, _, token = served.sign_in_url().partition("?token=")
        answer = requests.post(
            where, {"token": token}, allow_redirects=False, verify=str(certificate), timeout=60
        )
    assert "Secure" in answer.headers["set-cookie"]


def test_a_session_ends(world: World) -> None:
    """By signing out, and by its time."""
    visitor = world.visitor()
    kept = visitor.session.cookies.copy()
    assert visitor.post("/sign-out").url.endswith("/sign-in")
    assert visitor.get().url.endswith("/sign-in")
    visitor.session.cookies.update(kept)
    assert visitor.get().url.endswith("/sign-in"), "what was copied of the cookie is worth nothing"
    now = 0.0
    sessions = Sessions(clock=lambda: now)
    cookie = sessions.sign_in(sessions.token)
    assert sessions.find(cookie) is not None
    now = LIFE + 1
    assert sessions.find(cookie) is None


@pytest.mark.parametrize("csrf", ["", "wrong", "ü" * 10])
def test_a_change_needs_the_token_of_the_session(world: World, visitor: Visitor, csrf: str) -> None:
    """A form without it, with another, or of another site changes nothing."""
    job = visitor.json("/jobs")["jobs"][-1]["job"]
    assert visitor.post(f"/job/forget?id={job}", csrf=csrf).status_code == 403
    other = world.visitor().csrf()
    assert visitor.post(f"/job/forget?id={job}", csrf=other).status_code == 403
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert visitor.post(f"/job/forget?id={job}", headers=foreign).status_code == 403
    assert job in visitor.get("/jobs").text


def test_pages_forbid_what_they_do_not_need(visitor: Visitor) -> None:
    """A policy without unsafe-inline, no frames, no sniffing, nothing kept; no inline code."""
    answer = visitor.get()
    check_headers(answer)
    assert not re.search(r"<script(?! src=)|style=|\son\w+=", answer.text)
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", answer.text)


def check_headers(answer: requests.Response) -> None:
    """Nothing but this server, and nothing that a page of ours does without."""
    policy = dict(
        each.strip().split(" ", 1) for each in answer.headers["content-security-policy"].split(";")
    )
    none = {name for name, source in policy.items() if source == "'none'"}
    assert none == {"default-src", "base-uri", "frame-ancestors"}
    own = {name for name, source in policy.items() if source == "'self'"}
    assert own == policy.keys() - none
    assert "form-action" in own, "no default holds for it"
    for name, value in (
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cache-control", "no-store"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ):
        assert answer.headers[name] == value


def test_every_answer_forbids_it(world: World, visitor: Visitor) -> None:
    """The sign-in page, refusals, errors, files, JSON and figures as well as pages."""
    stranger = world.visitor(signed_in=False)
    json = {"Accept": "application/json"}
    for answer in (
        stranger.get("/sign-in"),
        stranger.get("", headers=json),
        stranger.get("", allow_redirects=False),
        stranger.sign_in("wrong"),
        stranger.get("/static/console.js"),
        visitor.get("/nonsense"),
        visitor.get("/keys", headers=json),
        visitor.post("/sign-out", csrf=""),
    ):
        check_headers(answer)
    with visitor.get("/live", stream=True) as figures:
        check_headers(figures)


def test_what_no_view_answers_is_said(visitor: Visitor) -> None:
    """No such page, another method, a form that is none: each with its own status and words."""
    assert visitor.get("/nonsense").status_code == 404
    assert "there is no such page" in visitor.get("/nonsense").text
    assert visitor.post("/loads").status_code == 405
    broken = visitor.session.post(
        visitor.address("/sign-out"),
        data=b"--x",
        headers={"Content-Type": "multipart/form-data"},
        timeout=60,
    )
    assert broken.status_code == 400
    assert "cannot be answered" in broken.text
