"""`calque serve` and `calque console`, as a user types them."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from calque.store.embedded import EmbeddedStore, StoreOptions
from tests.program import COMMAND, Program
from tests.servers.process import free_ports
from tests.store_client.test_store_commands import calque
from tests.store_client.test_tls import write_pair


@contextmanager
def running(*words: object, **environment: str) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """A running command with --json: what it said, and, once it ended, what it told people."""
    process = Program(COMMAND, *words, "--json", env={**os.environ, **environment})
    lines: list[str] = []
    try:
        said = ""
        for line in iter(process.stdout.readline, ""):
            said += line
            if line.startswith("}"):
                break
        yield json.loads(said), lines
    finally:
        process.send_signal(signal.SIGINT)
        lines += process.communicate()[1].splitlines()
    assert process.returncode == 0


def sign_in(address: str) -> requests.Session:
    """A browser that opens the printed address and presses the button."""
    session = requests.Session()
    session.trust_env = False
    page = session.get(address, timeout=60)
    assert "Sign in" in page.text
    where, _, token = address.partition("?token=")
    assert session.post(where, data={"token": token}, timeout=60).status_code == 200
    return session


def test_a_store_is_served_with_its_console(tmp_path: Path) -> None:
    """The address works once, and the token of the next browser is told; objects, keys, ledger."""
    with running("serve", tmp_path / "data", "--port", 0, **ledger(tmp_path)) as (told, lines):
        session = sign_in(told["console"]["sign_in"])
        url = told["console"]["url"]
        shown = session.get(url, headers={"Accept": "application/json"}, timeout=60).json()
        assert set(shown["sections"]) == {"store", "ledger"}
        assert shown["command"] == f"calque serve {tmp_path / 'data'}"
        for page in ("objects", "keys", "upkeep", "loads", "jobs"):
            assert session.get(f"{url}/{page}", timeout=60).status_code == 200
    assert any("the token for the next browser" in line for line in lines)


def test_a_store_with_a_passphrase_shows_no_objects_without_it(tmp_path: Path) -> None:
    """They are not linked either; what needs no passphrase is there."""
    folder = tmp_path / "data"
    EmbeddedStore.create(folder, StoreOptions(passphrase="sesame")).close()
    without = {"CALQUE_PASSPHRASE": "", **ledger(tmp_path)}
    with running("serve", folder, "--port", 0, "--no-s3", **without) as (told, lines):
        session = sign_in(told["console"]["sign_in"])
        url = told["console"]["url"]
        assert session.get(f"{url}/objects", timeout=60).status_code == 404
        assert session.get(f"{url}/upkeep", timeout=60).status_code == 200
        assert "Objects</a>" not in session.get(url, timeout=60).text
    assert any("passphrase" in line for line in lines)


def test_a_ledger_alone_has_its_console(tmp_path: Path) -> None:
    """Without a store; a port that is taken is said so; no log tells what signs a browser in."""
    with running("-v", "console", "--port", 0, **ledger(tmp_path)) as (told, lines):
        session = sign_in(told["sign_in"])
        shown = session.get(told["console"], headers={"Accept": "application/json"}, timeout=60)
        assert [*shown.json()["sections"]] == ["ledger"]
        port = told["console"].rpartition(":")[2].partition("/")[0]
        taken = calque("console", "--port", port, **ledger(tmp_path))
        assert taken.returncode == 2
        assert b"cannot listen" in taken.stderr
    assert any("uvicorn" in line for line in lines), "what is logged was seen"
    secrets = (told["sign_in"].partition("token=")[2], *session.cookies.values())
    assert not any(secret in line for secret in secrets for line in lines)


def test_a_ledger_alone_is_shown_by_tls(tmp_path: Path) -> None:
    """To others than this machine; half a pair, or one that does not fit, is wrong usage."""
    certificate, key = write_pair(tmp_path, "console")
    (tmp_path / "other").mkdir()
    _, foreign = write_pair(tmp_path / "other", "other")
    tls = ("console", "--port", 0, "--tls-cert", certificate, "--tls-key")
    with running(*tls, key, **ledger(tmp_path)) as (told, _):
        assert told["console"].startswith("https://")
        seen = requests.get(told["console"], verify=str(certificate), timeout=60)
        assert "One-time token" in seen.text
    for wrong, said in ((tls[:-1], b"--tls-key"), ((*tls, foreign), b"are no certificate")):
        refused = calque(*wrong, **ledger(tmp_path))
        assert refused.returncode == 2
        assert said in refused.stderr


def test_a_link_leads_to_where_one_is(tmp_path: Path) -> None:
    """A server that listens to every address is known by the name that its visitor came by."""
    words = ("serve", tmp_path / "data", "--port", 0, "--host", "0.0.0.0")
    with running(*words, **ledger(tmp_path)) as (told, lines):
        session = sign_in(told["console"]["sign_in"].replace("0.0.0.0", "127.0.0.1"))
        url = told["console"]["url"].replace("0.0.0.0", "127.0.0.1")
        token = re.search(r'name="csrf" value="([^"]+)"', session.get(url, timeout=60).text)
        assert token is not None
        form = {"csrf": token[1], "name": "photos", "hours": "1"}
        session.post(f"{url}/bucket/create", form, timeout=60)
        files = {"file": ("a.txt", b"light")}
        session.post(f"{url}/upload?path=photos%2F", form, files=files, timeout=60)
        where = f"{url}/object/link?path=photos%2Fa.txt"
        made = session.post(where, form, headers={"Accept": "application/json"}, timeout=60).json()
        assert made["link"].startswith("http://127.0.0.1:")
        assert requests.get(made["link"], timeout=60).content == b"light"
    assert any("not encrypted" in line for line in lines)


def test_a_ledger_that_is_away_hides_no_store(tmp_path: Path) -> None:
    """The overview says what is the matter; the page of loads too."""
    (port,) = free_ports(1)
    away = {"CALQUE_LEDGER_URL": f"postgresql://nobody:secret@127.0.0.1:{port}/none"}
    with running("serve", tmp_path / "data", "--port", 0, "--no-s3", **away) as (told, _):
        session = sign_in(told["console"]["sign_in"])
        url = told["console"]["url"]
        overview = session.get(url, timeout=60)
        assert overview.status_code == 200
        assert "Logical" in overview.text
        assert "secret" not in overview.text
        assert session.get(f"{url}/loads", timeout=60).status_code == 503


def ledger(folder: Path) -> dict[str, str]:
    return {"CALQUE_LEDGER_URL": str(folder / "ledger.db")}
