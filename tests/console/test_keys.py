"""Keys in the console: made with limits, shown once, used, revoked."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.console.test_objects import at
from tests.console.world import SCRIPT, Visitor, World

ALL = dict.fromkeys(("read", "write", "list", "delete"), "yes")
JSON = {"Accept": "application/json"}


def test_a_key_is_made_shown_once_and_revoked(visitor: Visitor) -> None:
    """Its limits are listed, its secret never again; revoked, it is gone."""
    form = {"name": SCRIPT, "prefixes": "photos/2026/\nphotos/ü/", "read": "yes", "list": "yes"}
    made = visitor.post("/keys/make", data=form, headers=JSON).json()
    assert made["access_key_id"].startswith("CQ")
    told = next(
        each for each in visitor.json("/keys")["keys"] if each["fingerprint"] == made["fingerprint"]
    )
    assert (told["name"], told["may"]) == (SCRIPT, "read,list")
    assert told["prefixes"] == ["photos/2026/", "photos/ü/"]
    shown = visitor.get("/keys").text
    assert SCRIPT not in shown
    assert made["secret_access_key"] not in shown
    assert made["access_key_id"] not in shown
    assert visitor.post(f"/keys/revoke?fingerprint={made['fingerprint']}").status_code == 200
    assert made["fingerprint"] not in visitor.get("/keys").text
    assert visitor.post(f"/keys/revoke?fingerprint={made['fingerprint']}").status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {**ALL, "until": "soon"},
        {**ALL, "prefixes": "photos/no-slash"},
        {**ALL, "prefixes": "/"},
    ],
)
def test_limits_that_make_no_sense_are_refused(visitor: Visitor, wrong: dict[str, str]) -> None:
    """And no key is made."""
    before = visitor.json("/keys")["keys"]
    assert visitor.post("/keys/make", data=wrong).status_code == 400
    assert visitor.json("/keys")["keys"] == before


def test_a_link_ends_with_its_key(visitor: Visitor, world: World) -> None:
    """It is listed as what it is."""
    made = visitor.post(
        at("object/link", "photos/2026/a.txt"), data={"hours": "1"}, headers=JSON
    ).json()
    listed = next(
        each for each in visitor.json("/keys")["keys"] if each["fingerprint"] == made["fingerprint"]
    )
    assert (listed["name"], listed["may"]) == ("link to photos/2026/a.txt", "read")
    assert listed["prefixes"] == ["photos/2026/"]
    until, said = (datetime.fromisoformat(each["until"]) for each in (listed, made))
    assert abs(until - said) < timedelta(seconds=1), "the key is over when the link is"
