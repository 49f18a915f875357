"""Repair: missing pieces are built anew from ciphertext, and never in place of newer ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from sqlalchemy import update

from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.metabase.accounts.nodes import Nodes, NodeState
from calque.store.metabase.model.packed_pieces import unpack
from calque.store.metabase.model.schema import segments
from calque.store.metabase.scan import open_snapshot
from calque.store.metabase.upkeep.repair_queue import (
    InjuredSegment,
    count_repairs,
    put_off_repair,
    queue_repairs,
    worst_repairs,
)
from calque.store.metabase.upkeep.replace_pieces import (
    Family,
    find_heir,
    read_owned,
    replace_pieces,
)
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.pieces import piece_id
from calque.store.open_project import open_project
from calque.store.upkeep.audit import audit_store
from calque.store.upkeep.engines import ScanOptions
from calque.store.upkeep.fsck import check_store
from calque.store.upkeep.heal import Healed, Healer
from calque.store.upkeep.repair import RepairOptions, RepairReport, check_segments, repair_store
from tests.store.upkeep.conftest import TWO_OF_FOUR
from tests.store.upkeep.kept_store import BUCKET, KeptStore

FOUR_OF_SIX = Redundancy.of(4, 6, share_size=50)


def repair(kept: KeptStore, *lost: int) -> RepairReport:
    """Repair with these nodes given up."""
    gone = tuple(kept.node(number).id.hex() for number in lost)
    return repair_store(kept.store, RepairOptions(gone=gone, scan=ScanOptions(range_rows=2)))


@pytest.fixture
def spread(make_store: Callable[..., KeptStore], any_database: str | None) -> KeptStore:
    """Four of six pieces on ten nodes."""
    kept = make_store(FOUR_OF_SIX, nodes=10, database=any_database)
    for number in range(3):
        kept.upload(f"o{number}")
    kept.copy("o0", "copy")
    return kept


def test_two_nodes_go_and_everything_comes_back(spread: KeptStore) -> None:
    """Every segment has six pieces again elsewhere; two more nodes go, and nothing is lost."""
    for number in (0, 1):
        spread.lose_node(number)
    first = repair(spread, 0, 1)
    assert (first.lost_segments, first.failed, first.no_room, first.queue) == (0, 0, 0, 0)
    health, _ = check_segments(spread.store.endpoint.database, ScanOptions())
    assert health.injured == []
    for number in (2, 3):
        spread.lose_node(number)
    second = repair(spread, 2, 3)
    assert second.lost_segments == 0
    assert second.by_health.get("lost", 0) == 0
    health, _ = check_segments(spread.store.endpoint.database, ScanOptions())
    assert (health.injured, health.lost) == ([], [])
    spread.read_all()
    spread.copy("copy", "copy of a copy")
    spread.delete("o0")
    spread.read_all()
    again = repair(spread)
    assert (again.repaired, again.pieces) == (0, 0)


def test_an_injured_original_is_queued_once(plain: KeptStore) -> None:
    """Its copies never; what is healed leaves the queue."""
    plain.upload("a", 900)
    for number in range(3):
        plain.copy("a", f"c{number}")
    database = plain.store.endpoint.database
    for node in plain.store.endpoint.admin.nodes()[:5]:
        Nodes(database).set_state(node.node_id, "failing")
    health, _ = check_segments(database, ScanOptions())
    assert len(health.injured) + len(health.lost) == 1


def test_what_is_lost_is_said(plain: KeptStore) -> None:
    """By segments and by objects, the copies among them; nothing is silently dropped."""
    plain.upload("a", 900)
    plain.upload("b", 2900)
    plain.copy("a", "a2")
    plain.project.upload(BUCKET, "inline", b"x")
    for number in range(6):
        plain.lose_node(number)
    report = repair(plain, *range(6))
    assert report.lost_segments == report.by_health["lost"] == 4
    assert (report.lost_objects, report.is_alarming) == (3, True)
    assert len(report.lost) == 4


def test_without_spare_nodes_it_says_so(make_store: Callable[..., KeptStore]) -> None:
    """Nothing is put twice on one node; it waits in the queue until there is room."""
    kept = make_store(FOUR_OF_SIX, nodes=6)
    kept.upload("a", 900)
    for number in (0, 1):
        kept.lose_node(number)
    report = repair(kept, 0, 1)
    assert (report.no_room, report.repaired, report.queue) == (1, 0, 1)
    assert report.is_alarming
    kept.read_all()


def test_silent_nodes_are_given_up_after_a_day(plain: KeptStore) -> None:
    """Until then their pieces count and new pieces go elsewhere; one that answers is ok again."""
    plain.upload("a")
    disk = plain.disk(0)
    disk.rename(disk.with_name("away"))
    assert [each.state for each in repair(plain).nodes if not each.answers] == ["silent"]
    plain.upload("b")
    assert not disk.exists()
    plain.pass_days(0.9)
    assert [each.state for each in repair(plain).nodes if not each.answers] == ["silent"]
    plain.pass_days(0.2)
    assert [each.state for each in repair(plain).nodes if not each.answers] == ["gone"]
    disk.with_name("away").rename(disk)
    assert {each.state for each in repair(plain).nodes} == {"ok"}
    plain.read_all()


def first_segment(kept: KeptStore) -> Family:
    """The only one that owns pieces."""
    database = kept.store.endpoint.database
    with open_snapshot(database) as snapshot:
        (row,) = snapshot.query(
            "SELECT stream_id, position FROM segments WHERE remote_alias_pieces IS NOT NULL"
        )
    found = read_owned(database, bytes(row[0]), int(row[1]))
    assert found is not None
    return found


def test_what_a_killed_repair_left_is_in_nobodys_way(make_store: Callable[..., KeptStore]) -> None:
    """The very piece that is missing lies on all other nodes but one, which takes it."""
    kept = make_store(TWO_OF_FOUR, nodes=8)
    kept.upload("a", 900)
    segment = first_segment(kept).segment
    lost, *rest = Nodes(kept.store.endpoint.database).unpack(segment.alias_pieces)
    having = {record.node_id for _, record in (lost, *rest)}
    free = [node for node in kept.store.own_nodes() if node.id not in having]
    left = [(node, piece_id(segment.root_piece_id, node.id, lost[0])) for node in free[1:]]
    for node, piece in left:
        node.write(piece, [b"left behind"], None)
    given_up = [n for n in range(8) if kept.node(n).id == lost[1].node_id]
    kept.lose_node(given_up[0])
    report = repair(kept, *given_up)
    assert (report.repaired, report.pieces, report.queue) == (1, 1, 0)
    for node, piece in left:
        assert b"".join(node.read(piece, 0, 100)) == b"left behind"
    kept.read_all()


def test_what_an_audit_found_is_not_forgotten_over_a_scan(kept: KeptStore) -> None:
    """A piece is missing, and another node of the segment is given up: both pieces come back."""
    database = kept.store.endpoint.database
    kept.upload("a", 900)
    segment = first_segment(kept).segment
    (number, poor), (_, leaving), *_ = Nodes(database).unpack(segment.alias_pieces)
    node = next(each for each in kept.store.nodes.direct() if each.id == poor.node_id)
    node.discard(piece_id(segment.root_piece_id, node.id, number))
    audit_store(kept.store, slots=100)
    repaired = repair_store(kept.store, RepairOptions(gone=(leaving.node_id.hex(),)))
    assert (repaired.queue, repaired.failed, repaired.no_room) == (0, 0, 0)
    assert "missing piece" not in {each.kind for each in check_store(kept.store)}
    kept.read_all()


def test_news_of_a_segment_outlives_a_repair_that_failed(kept: KeptStore) -> None:
    """A row that was queued anew is not put off; numbers of bad pieces are kept once each."""
    database = kept.store.endpoint.database
    injured = InjuredSegment(b"s" * 16, 0, b"r" * 32, 3, bytes([0, 2]))
    queue_repairs(database, [injured])
    (read,) = worst_repairs(database, 9)
    kept.pass_days(0.001)
    queue_repairs(database, [injured._replace(bad_pieces=bytes([2, 200]))])
    put_off_repair(database, read, 3600 * 1_000_000)
    (news,) = worst_repairs(database, 9)
    assert news.bad_pieces == bytes([0, 2, 200])
    put_off_repair(database, news, 3600 * 1_000_000)
    assert (worst_repairs(database, 9), count_repairs(database)) == ([], 1)
    queue_repairs(database, [injured._replace(root_piece_id=b"n" * 32, bad_pieces=b"")])
    assert [each.bad_pieces for each in worst_repairs(database, 9)] == [b""]


def test_a_promoted_copy_is_healed(kept: KeptStore) -> None:
    """The original is deleted while pieces are built: the copy that inherits gets the new list."""
    kept.upload("a", 900)
    kept.copy("a", "b")
    family = first_segment(kept)
    _injure(kept, family)
    kept.delete("a")  # after the segment was read, before the list is replaced
    assert Healer(kept.store).heal(family) is Healed.DONE
    heir = first_segment(kept)
    assert heir.segment.stream_id != family.segment.stream_id
    assert heir.segment.alias_pieces != family.segment.alias_pieces
    kept.read_all()


def test_somebody_was_quicker(kept: KeptStore) -> None:
    """The list changed meanwhile: nothing is written over, and the new pieces are removed."""
    kept.upload("a", 900)
    family = first_segment(kept)
    _injure(kept, family)
    assert Healer(kept.store).heal(family) is Healed.DONE
    now, pieces = first_segment(kept), kept.pieces()
    # Refused by the nodes where the same piece is there already, else by the swap.
    assert Healer(kept.store).heal(family) in (Healed.CHANGED, Healed.FAILED)
    assert first_segment(kept) == now
    assert kept.pieces() == pieces
    kept.read_all()


def test_the_slower_one_takes_nothing_away(make_store: Callable[..., KeptStore]) -> None:
    """Where only one node is left for the piece, the quicker one's lies there: it stays."""
    kept = make_store(TWO_OF_FOUR, nodes=5)
    kept.upload("a", 900)
    family = first_segment(kept)
    _injure(kept, family)
    assert Healer(kept.store).heal(family) is Healed.NO_ROOM
    now, pieces = first_segment(kept), kept.pieces()
    # A piece for which there is no other node stays in the list: that node may come back.
    assert [number for number, _ in unpack(now.segment.alias_pieces)] == [0, 1, 2, 3]
    assert Healer(kept.store).heal(family) is Healed.FAILED
    assert (first_segment(kept), kept.pieces()) == (now, pieces)
    kept.read_all()


def test_the_slower_one_that_empties_a_node_takes_nothing_away(
    make_store: Callable[..., KeptStore],
) -> None:
    """The same for a piece that is moved as it is: it lies where the quicker one has put it."""
    kept = make_store(TWO_OF_FOUR, nodes=5)
    kept.upload("a", 900)
    family, nodes = first_segment(kept), Nodes(kept.store.endpoint.database)
    (_, leaving), *_ = nodes.unpack(family.segment.alias_pieces)
    assert Healer(kept.store).move(family, leaving.node_id) is Healed.DONE
    now, pieces = first_segment(kept), kept.pieces()
    assert Healer(kept.store).move(family, leaving.node_id) is Healed.FAILED
    assert (first_segment(kept), kept.pieces()) == (now, pieces)
    kept.read_all()


def test_a_part_that_was_put_again_keeps_its_list(kept: KeptStore) -> None:
    """On the same nodes, so that the list is the same; what was built are pieces of the old one."""
    kept.upload("a", 900)
    family, database = first_segment(kept), kept.store.endpoint.database
    with database.engine.begin() as connection:
        connection.execute(update(segments).values(root_piece_id=b"n" * 32))
    now = first_segment(kept)
    assert now.segment.alias_pieces == family.segment.alias_pieces
    assert not replace_pieces(database, family, b"\x01\x00\x01")
    assert find_heir(database, family) is None
    assert first_segment(kept) == now


def test_a_deleted_object_is_no_failure(kept: KeptStore) -> None:
    """Its pieces go, and so does its place in the queue."""
    kept.upload("a", 900)
    family = first_segment(kept)
    _injure(kept, family)
    kept.delete("a")
    assert not replace_pieces(kept.store.endpoint.database, family, b"\x01")
    report = repair(kept)
    assert (report.repaired, report.failed, report.queue) == (0, 0, 0)


def test_no_key_is_needed(tmp_path: Path) -> None:
    """A store with a passphrase is repaired without it, and read with it."""
    roots = [str(tmp_path / "disks" / str(number)) for number in range(6)]
    options = StoreOptions(
        redundancy=Redundancy.of(2, 4), nodes=roots, passphrase="a long passphrase"
    )
    EmbeddedStore.create(tmp_path / "store", options).close()
    with open_project(tmp_path / "store", passphrase="a long passphrase") as project:
        project.create_bucket(BUCKET)
        project.upload(BUCKET, "k", bytes(100_000))
    for root in roots[:2]:
        shutil.rmtree(root)
    store = EmbeddedStore.open(tmp_path / "store")
    report = repair_store(store, RepairOptions(gone=tuple(roots[:2])))
    assert (report.lost_segments, report.failed, report.queue) == (0, 0, 0)
    assert worst_repairs(store.endpoint.database, 9) == []
    assert count_repairs(store.endpoint.database) == 0
    store.close()
    with open_project(tmp_path / "store", passphrase="a long passphrase") as project:
        assert project.download(BUCKET, "k").read() == bytes(100_000)


def _injure(kept: KeptStore, family: Family) -> None:
    """One node loses its disk, and another is given up: the segment is below its threshold."""
    nodes = Nodes(kept.store.endpoint.database)
    first, second, *_ = (record for _, record in nodes.unpack(family.segment.alias_pieces))
    kept.lose_node(next(n for n in range(6) if kept.node(n).id == first.node_id))
    for record in (first, second):
        nodes.set_state(record.node_id, "gone")


def test_a_node_that_is_given_up_may_still_be_read(plain: KeptStore) -> None:
    """Where nothing else is left: rather from a node that was given up by mistake than not."""
    plain.upload("a", 900)
    family = first_segment(plain)
    nodes = Nodes(plain.store.endpoint.database)
    for _, record in nodes.unpack(family.segment.alias_pieces)[:3]:
        nodes.set_state(record.node_id, "gone")
    assert Healer(plain.store).heal(family) is Healed.NO_ROOM
    assert first_segment(plain).segment.alias_pieces != family.segment.alias_pieces
    plain.read_all()


@pytest.mark.parametrize("state", get_args(NodeState))
def test_pieces_count_by_the_state_of_their_node(plain: KeptStore, state: NodeState) -> None:
    """Those of a node that is ok or silent; not of one that fails, leaves or is given up."""
    # However pieces are dealt: the node must have some of them.
    while len(plain.contents) < 6 or not plain.pieces()[plain.node(0).id]:
        plain.upload(f"o{len(plain.contents)}", 900)
    Nodes(plain.store.endpoint.database).set_state(plain.node(0).id, state)
    held = len(plain.pieces()[plain.node(0).id])
    health, _ = check_segments(plain.store.endpoint.database, ScanOptions())
    counted = state in ("ok", "silent")
    assert health.by_health["whole"] == len(plain.contents) - (0 if counted else held)
    if state == "gone":  # nothing will bring those back
        assert [each.healthy for each in health.injured] == [3] * held


def test_each_piece_less_is_another_health(make_store: Callable[..., KeptStore]) -> None:
    """Two of four: with three it is reduced, below its threshold injured, with one lost."""
    kept = make_store(Redundancy(required=2, repair=3, success=4, total=4, share_size=50), nodes=4)
    kept.upload("a", 900)
    database, seen = kept.store.endpoint.database, []
    for node in kept.store.endpoint.admin.nodes():
        health, _ = check_segments(database, ScanOptions())
        seen.append((*health.by_health, len(health.injured), len(health.lost)))
        Nodes(database).set_state(node.node_id, "failing")
    assert seen == [("whole", 0, 0), ("reduced", 0, 0), ("injured", 1, 0), ("lost", 0, 1)]


def test_the_worst_come_first(plain: KeptStore) -> None:
    """From the queue, whatever the order in which they were put there; each of them once."""
    database = plain.store.endpoint.database
    left = {b"b" * 16: 3, b"a" * 16: 1, b"c" * 16: 2}
    for stream, healthy in left.items():
        queue_repairs(database, [InjuredSegment(stream, 0, stream * 2, healthy)] * 2)
    assert [each.healthy for each in worst_repairs(database, 9)] == [1, 2, 3]
    assert [each.stream_id for each in worst_repairs(database, 1)] == [b"a" * 16]
