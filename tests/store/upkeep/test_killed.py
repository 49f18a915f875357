"""Killed at every step and started again: nothing is lost, nothing is leaked after the next gc."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import pytest
from sqlalchemy import insert, update

from calque import faults
from calque.errors import AlreadyExists, FailedPrecondition, NotFound
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.model.schema import operation_keys, project_usage
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.pieces import piece_id
from calque.store.open_project import open_project
from calque.store.upkeep.audit import audit_store
from calque.store.upkeep.backup import copy_store
from calque.store.upkeep.exit import exit_node
from calque.store.upkeep.expire import sweep_store
from calque.store.upkeep.fsck import check_store, mend_store
from calque.store.upkeep.gc import GcOptions, collect_store, restore_garbage
from calque.store.upkeep.repair import RepairOptions, repair_store
from calque.store.upkeep.tally import tally_store
from tests.forks import FORKS
from tests.store.upkeep.kept_store import BUCKET, KeptStore
from tests.store.upkeep.test_fsck import KEYS
from tests.store_client.world import SMALL, Clock

CERTAIN = GcOptions(window=timedelta(0), many=True, false_positives=1e-9)
"""A filter in which nothing is by chance: what is garbage goes at once."""


def collect(store: EmbeddedStore) -> None:
    collect_store(store, CERTAIN)


def repair(store: EmbeddedStore) -> None:
    lost = store.description.nodes[0]
    repair_store(store, RepairOptions(gone=(lost.id.hex(),)))


def leave(store: EmbeddedStore) -> None:
    exit_node(store, store.description.nodes[1].id.hex())


def mend(store: EmbeddedStore) -> None:
    mend_store(store, check_store(store, nodes=False))


def back_up(store: EmbeddedStore) -> None:
    copy_store(store, store.folder.with_name("backup"))


SERVICES: dict[str, Callable[[EmbeddedStore], object]] = {
    "gc": collect,
    "restore": restore_garbage,
    "repair": repair,
    "exit": leave,
    "tally": tally_store,
    "audit": audit_store,
    "expire": sweep_store,
    "fsck": mend,
    "backup": back_up,
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
    "expire": ("expire.step", "expire.step@4"),
    "fsck": ("fsck.mended",),
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
    end = kept.clock.now() + timedelta(hours=1)
    kept.project.upload(BUCKET, "over", bytes(1900), expires=end)
    kept.project.copy_object(BUCKET, "over", BUCKET, "over too")
    kept.lay_garbage(2)
    node = kept.node(2)
    node.root.write(f"trash/20200101/{piece_id(b'old', node.id, 0).hex()}", b"x")
    kept.lose_node(0)
    kept.clock.ahead += timedelta(hours=2)
    return kept


def kill_at(kept: KeptStore, service: str, step: str) -> None:
    """Have another process run a service of the store until it is killed."""
    child = FORKS.Process(
        target=run_until_killed, args=(str(kept.store.folder), kept.clock.ahead, service, step)
    )
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL, f"{step} was never reached"


def spoil_rows(kept: KeptStore) -> None:
    """Two things that fsck mends."""
    with kept.store.endpoint.database.engine.begin() as connection:
        connection.execute(insert(operation_keys).values(KEYS))
        connection.execute(
            update(project_usage).where(project_usage.c.shard == 0).values(bytes=7, objects=-3)
        )


@pytest.mark.parametrize(("service", "step"), CASES, ids=[step for _, step in CASES])
def test_killed_and_started_again(broken: KeptStore, service: str, step: str) -> None:
    """Every object has its bytes; after the next runs there is neither damage nor garbage."""
    if service == "fsck":
        spoil_rows(broken)
    kill_at(broken, service, step)
    broken.read_all()
    # The lease of the killed process runs out.
    broken.pass_days(0.01)
    SERVICES[service](broken.store)
    repair(broken.store)
    sweep_store(broken.store)
    collect(broken.store)
    broken.read_all()
    assert check_store(broken.store, young=True) == []


@pytest.mark.parametrize("step", ["backup.rows", "backup.segment@3", "backup.access"])
def test_a_killed_backup_is_none(broken: KeptStore, step: str) -> None:
    """What it leaves cannot be taken for a store; the next one is whole, into a new folder."""
    broken.delete("o1")
    kill_at(broken, "backup", step)
    left = broken.store.folder.with_name("backup")
    assert any(left.iterdir())
    with pytest.raises(NotFound, match="no store"):
        EmbeddedStore.open(left)
    with pytest.raises(AlreadyExists, match="not empty"):
        back_up(broken.store)
    if step != "backup.access":  # by then it has let the pieces go
        with pytest.raises(FailedPrecondition, match="another backup"):
            copy_store(broken.store, left.with_name("too early"))
    broken.delete("o2")
    broken.pass_days(0.01)
    report = copy_store(broken.store, left.with_name("again"))
    assert (report.lost_segments, report.missing_pieces > 0) == (0, True)
    saved = EmbeddedStore.open(left.with_name("again"), clock=broken.clock)
    with closing(saved), open_project(saved.folder, settings=SMALL) as project:
        for key, content in broken.contents.items():
            assert project.download(BUCKET, key).read() == content
    # What the killed one held back goes: nobody waits for it any more.
    sweep_store(broken.store)
    broken.read_all()
