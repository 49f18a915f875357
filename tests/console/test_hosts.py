"""A console on this machine answers to names that no other site can have."""

from __future__ import annotations

from http.client import HTTPConnection

import pytest

from calque.console.ledger_pages.section import ledger_section
from calque.console.server import serve_console
from calque.console.site import Site
from tests.console.world import World


def ask_as(origin: str, *hosts: str) -> tuple[int, str]:
    """Status and text of the sign-in page for one who says that it is called so."""
    connection = HTTPConnection(origin.partition("//")[2], timeout=60)
    connection.putrequest("GET", "/console/sign-in", skip_host=True)
    for host in hosts:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "LOCALHOST", "localhost.:7780", "[::1]:7780", "store.localhost:1"]
)
def test_its_own_names_are_answered(world: World, host: str) -> None:
    """Addresses and names of this machine, with a port or without."""
    assert ask_as(world.served.origin, host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:7780",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "evillocalhost",
        "",
    ],
)
def test_a_name_of_another_site_is_told_nothing(world: World, host: str) -> None:
    """Whoever gives its name the address of this machine (DNS rebinding) sees no page."""
    status, text = ask_as(world.served.origin, host)
    assert status == 421
    assert "Sign in" not in text


def test_a_proxy_is_answered_by_its_name() -> None:
    """The one that was given, and no other; a name given twice is none."""
    with serve_console(Site([ledger_section(lambda: None)]), names=["calque.example"]) as served:
        assert ask_as(served.origin, "Calque.Example:443")[0] == 200
        assert ask_as(served.origin, "other.example")[0] == 421
        assert ask_as(served.origin, "calque.example", "other.example")[0] in (400, 421)


def test_a_console_for_others_takes_every_name() -> None:
    """Nobody can know by which names a machine is reached that listens to all."""
    with serve_console(Site([ledger_section(lambda: None)]), "0.0.0.0") as served:
        port = served.origin.rpartition(":")[2]
        assert ask_as(f"http://127.0.0.1:{port}", "store.example")[0] == 200
