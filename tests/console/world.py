"""A console over a real store and a real ledger, and a visitor who speaks plain HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

import calque
from calque.console.ledger_pages.section import ledger_section
from calque.console.server import ServedConsole, serve_console
from calque.console.site import Site
from calque.console.store_pages.object import S3Door
from calque.console.store_pages.section import store_section
from calque.gateway.gateway import Gateway
from calque.gateway.server import serve_gateway
from calque.ledger import Ledger, open_ledger
from calque.ledger.job_record import Job, Span
from calque.ledger.jobs import begin_job
from calque.ledger.lease import this_process
from calque.store.embedded import EmbeddedStore
from calque.store.project import Project
from calque.store.uplink.session import Session
from calque.transfer.api import sync_tree

SCRIPT = "<script>document.title='run'</script>"
"""A name that would be seen if it ever were a script."""
IMAGE = "<img src=x onerror=document.title='run'>"
"""The same without a slash."""


@dataclass
class World:
    """A served console, and what it shows."""

    store: EmbeddedStore
    project: Project
    ledger: Ledger
    folder: Path
    served: ServedConsole

    @property
    def url(self) -> str:
        return self.served.url

    def visitor(self, *, signed_in: bool = True) -> Visitor:
        """A new browser without scripts."""
        visitor = Visitor(self.served)
        if signed_in:
            answer = visitor.sign_in(self.served.site.sessions.token)
            assert answer.status_code == 200, answer.text
        return visitor


class Visitor:
    """One who speaks HTTP and keeps cookies."""

    def __init__(self, served: ServedConsole) -> None:
        self._served = served
        self.session = requests.Session()
        self.session.trust_env = False

    def address(self, path: str) -> str:
        return f"{self._served.url}{path}"

    def get(self, path: str = "", **options: Any) -> requests.Response:
        return self.session.get(self.address(path), timeout=60, **options)

    def json(self, path: str = "") -> Any:
        answer = self.get(path, headers={"Accept": "application/json"})
        assert answer.headers["content-type"] == "application/json", answer.text
        return answer.json()

    def post(self, path: str, *, csrf: str | None = None, **options: Any) -> requests.Response:
        """Send a form with the token of the session, or another."""
        data = {**options.pop("data", {}), "csrf": self.csrf() if csrf is None else csrf}
        return self.session.post(self.address(path), data=data, timeout=60, **options)

    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.get().text)
        assert found is not None
        return found[1]

    def sign_in(self, token: str) -> requests.Response:
        return self.session.post(f"{self._served.url}/sign-in", data={"token": token}, timeout=60)


@contextmanager
def console_world(folder: Path) -> Iterator[World]:
    """A store with objects and copies, a ledger with good and bad loads and a tree."""
    store = EmbeddedStore.create(folder / "data")
    grant = store.grant()
    session = Session(store.endpoint, bytes(grant.api_key), grant.encryption, nodes=store.nodes)
    project = Project(session, grant, owns=store)
    ledger_place = folder / "ledger.db"
    fill_store(project)
    fill_ledger(folder, ledger_place)
    try:
        with open_ledger(ledger_place) as ledger, serve_gateway(Gateway(store)) as endpoint:
            site = Site(
                [
                    store_section(store, grant, S3Door(endpoint)),
                    ledger_section(
                        lambda: open_ledger(ledger_place), {"CALQUE_LEDGER_URL": str(ledger_place)}
                    ),
                ]
            )
            with serve_console(site) as served:
                yield World(store, project, ledger, folder, served)
    finally:
        project.close()


def fill_store(project: Project) -> None:
    """Names that are harmless and names that are not; a copy of each kind."""
    project.create_bucket("photos")
    for key in ("2026/a.txt", "2026/b.txt", f"2026/{SCRIPT}", f"2026/{IMAGE}", "ü/späße 100%.txt"):
        project.upload("photos", key, key.encode() * 100)
    project.upload("photos", "2026/big.bin", b"x" * 200_000)
    project.copy_object("photos", "2026/big.bin", "photos", "copies/first.bin")
    project.copy_object("photos", "2026/big.bin", "photos", "copies/second.bin")


def fill_ledger(folder: Path, ledger: Path) -> None:
    """A table with a load of good rows and one in which rows are rejected; trees: one that is
    over, and one that was left unfinished by a process that died."""
    stage = folder / "stage"
    stage.mkdir()
    (stage / "good.csv").write_text("id,amount\n1,10\n2,20\n")
    table = str(folder / "sales")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CALQUE_LEDGER_URL", str(ledger))
        calque.load(str(stage), into=table)
        (stage / f"bad{SCRIPT.replace('/', '')}.csv").write_text("id,amount\n3,30\n4,<b>no</b>\n")
        calque.load(str(stage), into=table, on_error="continue")
        sync_tree(str(stage), str(folder / "mirror"))
    with open_ledger(ledger) as opened:
        begin_job(opened, unfinished_job(), [Span()], 60.0)


def unfinished_job() -> Job:
    """A job whose process is not there any more."""
    return Job(
        job_id="20260101T000000-left",
        kind="sync",
        source=f"s3://from/{SCRIPT}",
        target="s3://to/",
        pair="left",
        request={},
        owner=this_process().rpartition("/")[0] + "/0",
        totals={"copied": {"objects": 12, "bytes": 3456}},
    )
