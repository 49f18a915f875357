"""Audit: whoever rots, lies or loses is found, and nobody else is blamed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from calque import faults
from calque.operator.layers.chain import Call
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.upkeep.lease import hold_lease
from calque.store.metabase.upkeep.repair_queue import worst_repairs
from calque.store.metabase.upkeep.replace_pieces import read_owned
from calque.store.metabase.upkeep.silent_audits import due_audits
from calque.store.nodes.erasure import HASH_SIZE, Coder, Redundancy, share_hash
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import piece_of_path
from calque.store.upkeep.audit import Auditor, AuditReport, NodeAudit, audit_store
from calque.store.upkeep.audit_sample import AuditSample
from calque.store.upkeep.audit_stripe import find_liars
from calque.store.upkeep.engines import ScanOptions
from calque.store.upkeep.exit import exit_node
from calque.store.upkeep.repair import RepairOptions, repair_store
from tests.store.upkeep.kept_store import BUCKET, KeptStore

THREE_OF_SIX = Redundancy.of(3, 6, share_size=50)
ALL = 1000


@pytest.fixture
def watched(make_store: Callable[..., KeptStore], any_database: str | None) -> KeptStore:
    """Three of six pieces on eight nodes."""
    kept = make_store(THREE_OF_SIX, nodes=8, database=any_database)
    for number in range(3):
        kept.upload(f"o{number}", 2900)
    kept.copy("o0", "copy")
    return kept


def audit(kept: KeptStore) -> AuditReport:
    return audit_store(kept.store, slots=ALL, scan=ScanOptions(range_rows=3))


def of_node(report: AuditReport, kept: KeptStore, number: int) -> NodeAudit:
    return next(each for each in report.nodes if each.node == kept.node(number).name)


def pieces_on(kept: KeptStore, number: int) -> int:
    return len(kept.pieces()[kept.node(number).id])


def test_all_is_well(watched: KeptStore) -> None:
    """Every segment that owns pieces is looked at, no copy is, and all answers are good."""
    report = audit(watched)
    assert (report.segments, report.dropped, report.is_alarming) == (9, 0, False)
    assert sum(each.good for each in report.nodes) == watched.piece_count() == 54


def rot(kept: KeptStore, number: int) -> None:
    for file in kept.disk(number).glob("pieces/*/*/*"):
        file.write_bytes(os.urandom(file.stat().st_size))


def lose(kept: KeptStore, number: int) -> None:
    for file in kept.disk(number).glob("pieces/*/*/*"):
        file.unlink()


def lie(kept: KeptStore, number: int) -> None:
    """Other bytes, with a hash that is right for them."""
    coder = Coder(THREE_OF_SIX)
    for file in kept.disk(number).glob("pieces/*/*/*"):
        piece = piece_of_path(str(file.relative_to(kept.disk(number))))
        assert piece is not None
        data, whole = bytearray(file.read_bytes()), coder.unit_size(THREE_OF_SIX.stripe_size)
        for stripe, start in enumerate(range(0, len(data), whole)):
            end = min(start + whole, len(data)) - HASH_SIZE
            data[end - 1] ^= 1  # the last byte of the share's payload
            data[end : end + HASH_SIZE] = share_hash(piece, stripe, bytes(data[start:end]))
        file.write_bytes(data)


@pytest.mark.parametrize("harm", [rot, lose, lie])
def test_the_guilty_node_is_found(watched: KeptStore, harm: Callable[..., None]) -> None:
    """Rot, loss, a lie with a right hash; the node is failing, and repair replaces its pieces."""
    held = pieces_on(watched, 0)
    harm(watched, 0)
    report = audit(watched)
    guilty = of_node(report, watched, 0)
    assert (guilty.wrong, guilty.good) == (held, 0)
    assert sum(each.wrong for each in report.nodes) == held
    assert guilty.state == ("failing" if held >= 3 else "ok")
    assert len(worst_repairs(watched.store.endpoint.database, 99)) == held
    repaired = repair_store(watched.store)
    assert (repaired.queue, repaired.failed) == (0, 0)
    again = audit(watched)
    assert sum(each.wrong for each in again.nodes) == 0
    watched.read_all()


def test_nobody_is_blamed_where_nobody_can_tell() -> None:
    """A liar against enough others is found; where two stories fit, neither is believed."""
    coder = Coder(THREE_OF_SIX)
    stripe = os.urandom(THREE_OF_SIX.stripe_size)
    shares = {number: bytes(share) for number, share in enumerate(coder.encode(stripe))}

    def changed(*numbers: int) -> dict[int, bytes]:
        return shares | {n: shares[n][:-1] + bytes([shares[n][-1] ^ 1]) for n in numbers}

    size = len(stripe)
    assert find_liars(coder, shares, size) == set()
    assert find_liars(coder, changed(4), size) == {4}
    assert find_liars(coder, changed(0), size) == {0}
    assert find_liars(coder, changed(0, 5), size) == set()
    assert find_liars(coder, changed(0, 1, 2), size) == set()
    few = {number: share for number, share in changed(1).items() if number < 3}
    assert find_liars(coder, few, size) == set()


def test_silence_counts_after_a_day(watched: KeptStore) -> None:
    """It is asked again three times; an answer in between clears it."""
    database, disk = watched.store.endpoint.database, watched.disk(1)
    held = pieces_on(watched, 1)
    disk.rename(disk.with_name("away"))
    report = audit(watched)
    assert (of_node(report, watched, 1).silent, report.is_alarming) == (held, False)
    assert due_audits(database) == []
    for again in range(3):
        watched.pass_days(0.34)
        assert len(due_audits(database)) == held
        found = of_node(audit_store(watched.store, slots=1), watched, 1)
        assert (found.wrong > 0) == (again == 2), again
    assert Nodes(database).get(watched.node(1).id).audits_wrong == held
    disk.with_name("away").rename(disk)


def test_an_answer_in_between_clears_it(watched: KeptStore) -> None:
    """A node that was away for an hour is not blamed."""
    disk = watched.disk(1)
    disk.rename(disk.with_name("away"))
    audit(watched)
    disk.with_name("away").rename(disk)
    watched.pass_days(0.4)
    audit(watched)
    watched.pass_days(3)
    assert due_audits(watched.store.endpoint.database) == []
    assert Nodes(watched.store.endpoint.database).get(watched.node(1).id).audits_wrong == 0


def test_what_changed_meanwhile_is_dropped(
    watched: KeptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleted while it is looked at: its nodes have no piece any more, and no blame."""

    def delete_all(step: str) -> None:
        if step == "audit.asked":
            for key in list(watched.contents):
                watched.delete(key)

    monkeypatch.setattr(faults, "point", delete_all)
    report = audit(watched)
    assert (report.segments, report.dropped) == (9, 9)
    assert not report.is_alarming


def deleted(kept: KeptStore) -> None:
    for key in list(kept.contents):
        kept.delete(key)


def moved(kept: KeptStore) -> None:
    """Every piece of a node lies on another, and its own disk is empty."""
    assert exit_node(kept.store, kept.node(0).id.hex()).is_done
    lose(kept, 0)


def repaired(kept: KeptStore) -> None:
    """The same, without its goodbye."""
    lose(kept, 0)
    repair_store(kept.store, RepairOptions(gone=(kept.node(0).id.hex(),)))


def promoted(kept: KeptStore) -> None:
    """A copy has inherited the pieces, and they were moved from there."""
    for number in range(3):
        kept.copy(f"o{number}", f"heir{number}")
        kept.delete(f"o{number}")
    moved(kept)


def renamed(kept: KeptStore) -> None:
    """The objects have other keys, and their pieces other places."""
    for number in range(3):
        kept.project.move_object(BUCKET, f"o{number}", BUCKET, f"new{number}")
        kept.contents[f"new{number}"] = kept.contents.pop(f"o{number}")
    moved(kept)


@pytest.mark.parametrize("moment", ["audit.chosen", "audit.asked"])
@pytest.mark.parametrize("change", [deleted, moved, repaired, promoted, renamed])
def test_a_change_before_the_answers_blames_nobody(
    watched: KeptStore,
    change: Callable[[KeptStore], None],
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stripe is chosen, then its segment is deleted, moved or repaired: the piece that its node
    does not have any more is neither counted, nor queued for repair, nor asked for again."""
    assert pieces_on(watched, 0)
    steps = 0

    def change_at_the_first(step: str) -> None:
        nonlocal steps
        steps += step == moment
        if step == moment and steps == 1:
            change(watched)

    # So the segment that is looked at first has one there, too, whichever it is.
    _put_pieces_of_all_on(watched, 0)
    monkeypatch.setattr(faults, "point", change_at_the_first)
    report = audit(watched)
    database = watched.store.endpoint.database
    assert report.dropped >= 1
    assert not report.is_alarming
    assert {(each.wrong, each.silent) for each in report.nodes} == {(0, 0)}
    assert {each.audits_wrong for each in Nodes(database).all()} == {0}
    assert worst_repairs(database, 99) == []
    watched.pass_days(9)
    assert due_audits(database) == []
    watched.read_all()


def _put_pieces_of_all_on(kept: KeptStore, number: int) -> None:
    """Upload anew until every segment has a piece on this node."""
    kept.delete("copy")  # it would keep the pieces of what it was copied from
    for key in ("o0", "o1", "o2"):
        while not _all_on(kept, key, number):
            kept.upload(key, 2900)
    kept.copy("o0", "copy")


def _all_on(kept: KeptStore, key: str, number: int) -> bool:
    stream = bytes.fromhex(kept.project.stat(BUCKET, key).etag)
    nodes, mine = Nodes(kept.store.endpoint.database), kept.node(number).id
    families = [read_owned(kept.store.endpoint.database, stream, at) for at in range(3)]
    return all(
        family is not None
        and mine in {each.node_id for _, each in nodes.unpack(family.segment.alias_pieces)}
        for family in families
    )


def test_a_silent_piece_that_was_moved_is_forgotten(watched: KeptStore) -> None:
    """Silence is counted against the node that has the piece by the row of today, or nobody."""
    database, disk = watched.store.endpoint.database, watched.disk(0)
    disk.rename(disk.with_name("away"))
    assert of_node(audit(watched), watched, 0).silent
    repair_store(watched.store, RepairOptions(gone=(watched.node(0).id.hex(),)))
    for _ in range(4):
        watched.pass_days(0.4)
        assert not audit_store(watched.store, slots=1).is_alarming
    assert due_audits(database) == []
    assert {each.audits_wrong for each in Nodes(database).all()} == {0}


def test_a_silent_piece_that_goes_while_it_is_asked_for_again_blames_nobody(
    watched: KeptStore,
) -> None:
    """Its object is deleted between the row and the answer: that there is no such piece."""
    database, node, disk = watched.store.endpoint.database, watched.node(0), watched.disk(0)
    disk.rename(disk.with_name("away"))
    assert of_node(audit(watched), watched, 0).silent
    disk.with_name("away").rename(disk)
    watched.pass_days(0.4)
    due = due_audits(database)

    def delete_first(call: Call, proceed: Callable[[Call], Any]) -> Any:
        if call.path.startswith("pieces/") and call.verb != "delete":
            for key in list(watched.contents):
                watched.delete(key)
        return proceed(call)

    asked = Node(node.id, node.root.layer(delete_first), node.placement)
    with hold_lease(database, "audit") as lease:
        auditor = Auditor(watched.store, lease)
        watched.store.nodes._nodes[node.id] = asked
        for each in due:
            auditor.ask_again(each)
        auditor.settle()
    assert watched.contents == {}
    assert due_audits(database) == []
    assert {each.audits_wrong for each in Nodes(database).all()} == {0}


def test_larger_segments_are_drawn_more_often() -> None:
    """By their size, and the same however the table is cut."""
    rows = [(bytes([n]) * 16, 0, os.urandom(32), 900 if n < 5 else 100, b"\x01\x00\x01", None)
            for n in range(10)]  # fmt: skip
    drawn: Counter[bool] = Counter()
    for number in range(400):
        whole, cut = (AuditSample(number.to_bytes(16, "big"), 0, slots=1) for _ in range(2))
        for sample, parts in ((whole, [rows]), (cut, [rows[:3], rows[3:4], rows[4:]])):
            for part in parts:
                fork = sample.fork()
                fork.process(dict(zip(sample.columns, zip(*part, strict=True), strict=True)))
                sample.join(fork.result())
        assert whole.segments == cut.segments
        drawn[whole.segments[0][0][0] < 5] += 1
    assert drawn[True] > 300
