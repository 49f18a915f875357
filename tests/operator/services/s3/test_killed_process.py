"""A copying process is killed (SIGKILL) at every request, then another resumes or sweeps."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from calque.errors import CheckpointInvalid
from calque.operator import Operator
from tests.forks import FORKS
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import PART, Open
from tests.servers.proxy import Exchange, Fault, FaultProxy
from tests.servers.seaweedfs import S3Server

LOST = 255
"""What the fork server tells when it lost a code."""


def copy(root: str, notes: Path, environment: dict[str, str]) -> None:
    """In a process of its own: a copy that notes its checkpoint after every step."""
    os.environ.update(environment)
    op = Operator.from_uri(root, threshold=1, part_size=PART)
    with op.copier("from", "to", concurrent=2) as copier:
        for _ in copier:
            fresh = notes.with_suffix(".new")
            fresh.write_text(copier.checkpoint().to_json())
            os.replace(fresh, notes)


class Assassin:
    """Kills the copying process when its n-th request comes by, before or after the server acts."""

    def __init__(self) -> None:
        self.child: BaseProcess | None = None
        self.ready = threading.Event()
        self.struck = False

    def strike(self, _: Exchange) -> None:
        self.ready.wait(60)
        assert self.child is not None
        self.struck = True
        self.child.kill()


def run_and_kill(
    proxy: FaultProxy, server: S3Server, root: str, notes: Path, number: int, acted: bool
) -> bool:
    """Whether the copy was killed; False when it had fewer requests than that."""
    assassin = Assassin()
    proxy.reset()
    proxy.add(Fault(after=number, hook=assassin.strike, drop=True, acted=acted))
    environment = {**server.environment, "AWS_ENDPOINT_URL_S3": proxy.endpoint}
    assassin.child = FORKS.Process(target=copy, args=(root, notes, environment), daemon=True)
    assassin.child.start()
    assassin.ready.set()
    assassin.child.join(150)
    assert assassin.child.exitcode in ((-signal.SIGKILL, LOST) if assassin.struck else (0, LOST))
    return assassin.struck


@pytest.mark.parametrize("acted", [False, True], ids=["before the server acts", "after"])
def test_killed_at_every_request(
    op: Operator,
    open_at: Open,
    proxy: FaultProxy,
    server: S3Server,
    tmp_path: Path,
    acted: bool,
) -> None:
    """The target is old or whole; a resume or a new copy makes it whole; a sweep leaves nothing."""
    data = content(2 * PART + 17)
    op.write("from", data)
    root = op.location("").rstrip("/")
    sweeper = open_at(sweep_empty=True)
    resumed = 0
    for number in range(40):
        notes = tmp_path / f"{number}.json"
        op.write("to", b"old")
        killed = run_and_kill(proxy, server, root, notes, number, acted)
        assert op.read("to") in (b"old", data)
        if killed and notes.exists():
            try:
                assert sum(op.resume(notes.read_text())) == len(data)
                resumed += 1
            except CheckpointInvalid:
                op.copy("from", "to")
        elif killed:
            op.copy("from", "to")
        assert op.read("to") == data
        for left in list(sweeper.leftovers()):
            sweeper.remove_leftover(left)
        assert list(sweeper.leftovers()) == []
        if not killed:
            break
    assert not killed
    assert number >= 7
    assert resumed >= 2
