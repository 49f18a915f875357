"""A node leaves: each piece is moved once, nothing new comes, it can be stopped and resumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from typer.testing import CliRunner

from calque import faults
from calque.cli.main import app
from calque.errors import FailedPrecondition, NotFound, Unavailable
from calque.operator.layers.chain import Call
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.objects.physical_segments import physical_segments
from calque.store.metabase.upkeep.last_runs import past_runs
from calque.store.metabase.upkeep.lease import Lease, hold_lease
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.node import Node
from calque.store.upkeep import exit as exit_module
from calque.store.upkeep.engines import ScanOptions
from calque.store.upkeep.exit import cancel_exit, exit_node, exit_progress, resume_exits
from calque.store.upkeep.node_states import check_nodes, find_node
from calque.store.upkeep.repair import RepairOptions, repair_store
from tests.store.upkeep.conftest import TWO_OF_FOUR
from tests.store.upkeep.kept_store import KeptStore


@pytest.fixture
def full(kept: KeptStore) -> KeptStore:
    """Some objects and copies, with pieces on every node."""
    for number in range(4):
        kept.upload(f"o{number}")
    kept.copy("o0", "copy")
    return kept


def held(kept: KeptStore, number: int) -> int:
    return len(kept.pieces()[kept.node(number).id])


def test_every_piece_is_moved(full: KeptStore) -> None:
    """Afterwards the disk may go: every object is there, and nothing is wrong."""
    before, name = held(full, 0), full.node(0).id.hex()
    assert before > 0
    assert exit_node(full.store, name, dry_run=True).left == before
    report = exit_node(full.store, name[:10], scan=ScanOptions(range_rows=2))
    assert (report.state, report.moved, report.left) == ("gone", before, 0)
    full.lose_node(0)
    full.read_all()
    for number in range(3):
        full.upload(f"new{number}")
    assert not full.disk(0).exists()
    assert repair_store(full.store).pieces == 0
    with pytest.raises(FailedPrecondition, match="gone"):
        exit_node(full.store, name)


def test_it_is_stopped_and_resumed(full: KeptStore) -> None:
    """After each stop the rest is moved; a promotion meanwhile changes nothing."""
    name, before = full.node(1).id.hex(), held(full, 1)
    steps = iter(range(-1, 100))  # its scan asks once
    first = exit_node(full.store, name, over=lambda: next(steps) >= 2)
    assert (first.state, first.moved) == ("exiting", 2)
    full.upload("meanwhile")
    full.delete("o0")  # its copy inherits what was moved and what was not
    (second,) = resume_exits(full.store, lambda: False)
    assert (second.state, second.left) == ("gone", 0)
    assert second.moved <= before - 2
    full.lose_node(1)
    full.read_all()


def test_how_far_it_is_is_seen_meanwhile(full: KeptStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whoever looks at the metabase; no report of a run is pushed out by it."""
    monkeypatch.setattr("calque.store.upkeep.exit._NOTED_EVERY_S", -1.0)
    database, record = full.store.endpoint.database, full.node(0)
    node = find_node(full.store, record.id.hex())
    seen = []
    exit_node(
        full.store, record.id.hex(), tell=lambda *_: seen.append(exit_progress(database, node))
    )
    told = list(dict.fromkeys(each for each in seen if each is not None))
    assert seen[0] is None, "not counted yet"
    assert len(told) > 1
    assert [each.moved for each in told] == list(range(len(told)))
    assert {each.moved + each.left for each in told} == {told[0].left}
    assert len(past_runs(database, "exit")) == 1
    assert past_runs(database, f"exit of {node.name}") == []


def test_what_a_node_keeps_after_it_left_is_no_orphan(full: KeptStore) -> None:
    """Its disk still has the pieces that were moved; the store is whole without them."""
    assert exit_node(full.store, full.node(0).id.hex()).is_done
    assert held(full, 0) > 0
    full.check()


def test_pieces_that_cannot_be_read_are_built(full: KeptStore) -> None:
    """A node with a broken disk leaves all the same."""
    for file in full.disk(2).glob("pieces/*/*/*"):
        file.write_bytes(b"rot")
    assert exit_node(full.store, full.node(2).id.hex()).is_done
    full.read_all()


def test_without_room_it_says_so(make_store: Callable[..., KeptStore]) -> None:
    """Nothing is put twice on one node; the node goes on leaving until there is room."""
    kept = make_store(TWO_OF_FOUR, nodes=4)
    kept.upload("a")
    name = kept.node(0).id.hex()
    report = exit_node(kept.store, name)
    assert (report.state, report.moved) == ("exiting", 0)
    assert report.no_room == report.left == 3
    kept.check()
    assert cancel_exit(kept.store, name).state == "ok"
    with pytest.raises(FailedPrecondition, match="nothing to cancel"):
        cancel_exit(kept.store, name)


def test_an_upload_under_way_puts_nothing_there(plain: KeptStore) -> None:
    """A segment that began before is committed without the piece on the leaving node."""

    def chunks() -> object:
        yield bytes(500)
        exit_node(plain.store, plain.node(0).id.hex())
        yield bytes(400)

    plain.contents["a"] = bytes(900)
    plain.project.upload("photos", "a", chunks())  # type: ignore[arg-type]
    plain.lose_node(0)
    plain.read_all()
    assert exit_node(plain.store, plain.node(1).id.hex()).is_done


@pytest.mark.parametrize("service", ["repair", "exit"])
def test_pieces_are_not_moved_to_a_node_that_leaves_meanwhile(
    make_store: Callable[..., KeptStore], monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    """Two nodes leave at once, or one while a repair writes: none is named once it is gone."""
    kept = make_store(Redundancy.of(1, 2, share_size=200), nodes=4)
    kept.upload("a", 900)
    holders = {n for n in range(4) if held(kept, n)}
    first, (one, other) = min(holders), sorted({0, 1, 2, 3} - holders)
    point, passed = faults.point, list[str]()

    def leave_when_written(step: str) -> None:
        if step == "repair.written" and not passed:
            passed.extend(str(n) for n in (one, other) if held(kept, n))
            exit_node(kept.store, kept.node(int(passed[0])).id.hex())
        point(step)

    monkeypatch.setattr(faults, "point", leave_when_written)
    name = kept.node(first).id.hex()
    if service == "exit":
        assert exit_node(kept.store, name).is_done
    else:
        assert repair_store(kept.store, RepairOptions(gone=(name,))).failed == 1
    database, left = kept.store.endpoint.database, kept.node(int(passed[0])).id
    for segment in physical_segments(database):
        assert left not in {node_id for _, node_id in segment.pieces}
    for number in (first, int(passed[0])):
        kept.lose_node(number)
    kept.read_all()


def test_who_asks_all_nodes_does_not_keep_one_from_leaving(plain: KeptStore) -> None:
    """Told to leave while another is asked, and silent when its turn comes: it goes on leaving."""
    first, second = plain.node(0), plain.node(1)
    database = plain.store.endpoint.database

    def tell_second_to_leave(call: Call, proceed: Callable[[Call], Any]) -> Any:
        Nodes(database).set_state(second.id, "exiting", left_at=7)
        raise Unavailable("the first is away")

    directory = plain.store.nodes._nodes
    directory[first.id] = Node(first.id, first.root.layer(tell_second_to_leave), first.placement)
    plain.lose_node(1)
    states = {each.node: each.state for each in check_nodes(plain.store)}
    assert (states[first.name], states[second.name]) == ("silent", "exiting")
    record = Nodes(database).get(second.id)
    assert (record.state, record.left_at) == ("exiting", 7)


def test_a_node_that_left_is_not_welcome_back_by_itself(plain: KeptStore) -> None:
    """It still answers until it is switched off; one that was given up by mistake is ok again."""
    left, mistaken = plain.node(0), plain.node(1)
    nodes = Nodes(plain.store.endpoint.database)
    nodes.set_state(left.id, "gone", left_at=7)
    nodes.set_state(mistaken.id, "gone")
    states = {each.node: each.state for each in check_nodes(plain.store)}
    assert (states[left.name], states[mistaken.name]) == ("gone", "ok")
    assert nodes.get(left.id).state == "gone"


def test_a_node_that_has_left_is_not_called_back(
    plain: KeptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled in the moment in which it was done: its disk may be switched off already."""
    database, node = plain.store.endpoint.database, plain.node(0)
    nodes = Nodes(database)
    nodes.set_state(node.id, "exiting", left_at=7)
    assert cancel_exit(plain.store, node.id.hex(), dry_run=True).state == "exiting"
    assert nodes.get(node.id).state == "exiting"

    def leave_first(database: Database, service: str) -> AbstractContextManager[Lease]:
        Nodes(database).set_state(node.id, "gone", left_at=8)
        return hold_lease(database, service)

    monkeypatch.setattr(exit_module, "hold_lease", leave_first)
    with pytest.raises(FailedPrecondition, match="is gone"):
        cancel_exit(plain.store, node.id.hex())
    assert nodes.get(node.id).state == "gone"


def test_a_server_empties_nodes_that_nobody_else_does(full: KeptStore) -> None:
    """Two nodes leave, one of them by a command that runs: the other is gone on with."""
    database = full.store.endpoint.database
    for number in (0, 1):
        Nodes(database).set_state(full.node(number).id, "exiting", left_at=7)
    with hold_lease(database, f"exit {full.node(0).name}"):
        (report,) = resume_exits(full.store, lambda: False)
    assert (report.node, report.state) == (full.node(1).name, "gone")
    assert Nodes(database).get(full.node(0).id).state == "exiting"


def test_the_command_leaves_and_cancels(plain: KeptStore) -> None:
    """By the root of the node, with a report; a name that is none is told with those that are."""
    plain.upload("a")
    folder, root = str(plain.store.folder), str(plain.disk(0))
    plain.store.register_nodes()
    done = CliRunner().invoke(app, ["store", "exit", folder, root, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["state"] == "gone"
    with pytest.raises(NotFound, match="no node"):
        exit_node(plain.store, "xyz")
