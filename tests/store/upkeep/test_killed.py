"""Killed at every step and started again: nothing is lost, nothing is leaked after the next gc."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import timedelta

import pytest

from calque import faults
from calque.store.embedded import EmbeddedStore
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.pieces import piece_id
from calque.store.upkeep.audit import audit_store
from calque.store.upkeep.exit import exit_node
from calque.store.upkeep.fsck import check_store
from calque.store.upkeep.gc import GcOptions, collect_store, restore_garbage
from calque.store.upkeep.repair import RepairOptions, repair_store
from calque.store.upkeep.tally import tally_store
from tests.forks import FORKS
from tests.store.upkeep.kept_store import KeptStore
from tests.store_client.world import Clock

CERTAIN = GcOptions(window=timedelta(0), many=True, false_positives=1e-9)
"""A filter in which nothing is by chance: what is garbage goes at once."""


def collect(store: EmbeddedStore) -> None:
    collect_store(store, CERTAIN)


def repair(store: EmbeddedStore) -> None:
    lost = store.description.nodes[0]
    repair_store(store, RepairOptions(gone=(lost.id.hex(),)))


def leave(store: EmbeddedStore) -> None:
    exit_node(store, store.description.nodes[1].id.hex())


SERVICES: dict[str, Callable[[EmbeddedStore], object]] = {
    "gc": collect,
    "restore": restore_garbage,
    "repair": repair,
    "exit": leave,
    "tally": tally_store,
    "audit": audit_store,
}
STEPS = {
    "gc": ("scan.range", "scan.counted", "gc.filters", "gc.noted", "gc.moved@3", "gc.emptied"),
    "restore": ("gc.restored",),
    "repair": (
        "repair.checked", "repair.queued", "repair.written", "repair.replaced", "repair.settled",
    ),
    "exit": ("exit.begun", "exit.moved"),
    "tally": ("tally.counted",),
    "audit": ("audit.asked",),
}  # fmt: skip
CASES = [(service, step) for service, steps in STEPS.items() for step in steps]


def run_until_killed(folder: str, ahead: timedelta, service: str, step: str) -> None:
    """In another process: a service that is killed at a step of it."""
    faults.arm(f"{step}:kill")
    store = EmbeddedStore.open(folder, clock=Clock(ahead))
    SERVICES[service](store)
    os._exit(0)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.soak)])
def broken(request: pytest.FixtureRequest, make_store: Callable[..., KeptStore]) -> KeptStore:
    """A node lost its disk, killed uploads left pieces, and there is something in the trash."""
    database = None
    if request.param == "postgresql":
        database = request.getfixturevalue("postgres").database()
    kept = make_store(Redundancy.of(2, 4, share_size=200), nodes=8, database=database)
    # So many that every node has pieces, however they are dealt.
    for number in range(8):
        kept.upload(f"o{number}", 1900)
    kept.copy("o0", "copy")
    kept.lay_garbage(2)
    node = kept.node(2)
    node.root.write(f"trash/20200101/{piece_id(b'old', node.id, 0).hex()}", b"x")
    kept.lose_node(0)
    return kept


@pytest.mark.parametrize(("service", "step"), CASES, ids=[step for _, step in CASES])
def test_killed_and_started_again(broken: KeptStore, service: str, step: str) -> None:
    """Every object has its bytes; after the next runs there is neither damage nor garbage."""
    folder = broken.store.folder
    child = FORKS.Process(
        target=run_until_killed, args=(str(folder), broken.clock.ahead, service, step)
    )
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL, f"{step} was never reached"
    broken.read_all()
    # The lease of the killed process runs out.
    broken.pass_days(0.01)
    SERVICES[service](broken.store)
    repair(broken.store)
    collect(broken.store)
    broken.read_all()
    # All that is wrong is that the lost node does not answer.
    findings = check_store(broken.store, young=True)
    assert [each.kind for each in findings] == ["node that does not answer"]
