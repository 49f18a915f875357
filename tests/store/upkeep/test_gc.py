"""Garbage collection: what no segment names goes, and nothing else, whatever happens meanwhile."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from calque import faults
from calque.errors import FailedPrecondition, IntegrityError, Unavailable
from calque.faults import InjectedFault
from calque.operator.layers.chain import Call
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.model.schema import freed_segments
from calque.store.metabase.objects.hold_pieces import hold_pieces
from calque.store.metabase.scan import Range, Snapshot, open_snapshot
from calque.store.metabase.upkeep import lease as lease_module
from calque.store.nodes.bloom import WORDS_SIZE, BloomFilter, BloomShape, words_of
from calque.store.nodes.node import Node
from calque.store.nodes.piece_filter import PieceFilter
from calque.store.nodes.pieces import piece_id
from calque.store.nodes.trash import collect_garbage, empty_trash, remove_unfinished
from calque.store.upkeep.engines import ScanOptions
from calque.store.upkeep.exit import exit_node
from calque.store.upkeep.expire import sweep_store
from calque.store.upkeep.gc import GcOptions, collect_store, make_filters, restore_garbage
from calque.store.upkeep.piece_filters import PieceFilters
from calque.store.upkeep.repair import RepairOptions, repair_store
from calque.store.upkeep.scan import LocalRunner, RangeResult, ScanJob, run_scan
from tests.store.upkeep.kept_store import BUCKET, KeptStore

DOZENS = 84
"""Of rounds, in the long test."""
NO_WINDOW = GcOptions(window=timedelta(0), many=True, scan=ScanOptions(range_rows=3))


def trashed(kept: KeptStore, options: GcOptions | None = None) -> int:
    return collect_store(kept.store, options).trashed


def restored(kept: KeptStore, *, dry_run: bool = False) -> int:
    return sum(each.restored for each in restore_garbage(kept.store, dry_run=dry_run))


def test_garbage_goes_and_everything_else_stays(kept: KeptStore) -> None:
    """Originals, copies, promoted copies and pending parts keep their pieces; twice is nothing."""
    for key in ("a", "b"):
        kept.upload(key)
        kept.copy(key, f"{key}2")
    kept.delete("a")  # a2 inherits the pieces
    upload = kept.project.begin_multipart(BUCKET, "parts")
    upload.upload_part(1, bytes(2500))
    kept.pass_days(4)
    whole = kept.piece_count()
    garbage = kept.lay_garbage(8)
    # A tenth may pass as named, by design; the seed is new in each run, so they go in the end.
    gone = trashed(kept)
    assert garbage // 2 < gone <= garbage
    for _ in range(12):
        gone += trashed(kept)
    assert gone == garbage
    assert kept.piece_count() == whole
    upload.commit()
    kept.contents["parts"] = bytes(2500)
    kept.check()
    kept.delete("a2")
    kept.pass_days(4)
    assert trashed(kept) == 0  # its pieces went when it was deleted
    kept.check()


def test_ranges_keep_the_pieces_of_every_source(kept: KeptStore) -> None:
    """Of an object made of two others, which are gone since; pending ranges too."""
    project = kept.project
    for key in ("one", "two", "three"):
        kept.upload(key, 1500)
    upload = project.begin_multipart(BUCKET, "ranges")
    upload.copy_part(1, BUCKET, "one", offset=100, length=700)
    upload.copy_part(2, BUCKET, "two", offset=900, length=400)
    upload.commit()
    one, two = kept.contents["one"], kept.contents["two"]
    kept.contents["ranges"] = one[100:800] + two[900:1300]
    pending = project.begin_multipart(BUCKET, "pending")
    pending.copy_part(1, BUCKET, "three", offset=1, length=1400)
    kept.contents["pending"] = kept.contents["three"][1:1401]
    for key in ("one", "two", "three"):
        kept.delete(key)
    kept.lay_garbage(3)
    assert trashed(kept, replace(NO_WINDOW, false_positives=1e-9)) == 3 * len(
        kept.store.nodes.direct()
    )
    pending.commit()
    kept.check()
    for key in ("ranges", "pending"):
        kept.delete(key)
    assert kept.piece_count() == 0


def test_what_was_deleted_while_nodes_were_away_goes(kept: KeptStore) -> None:
    """Its pieces still wait to be deleted, and no filter holds them."""
    kept.upload("a", 900)
    kept.upload("stays", 900)
    away = [(kept.disk(number), kept.disk(number).with_name(f"{number}-away")) for number in
            range(6)]  # fmt: skip
    whole = kept.piece_count()
    for disk, aside in away:
        disk.rename(aside)
    kept.delete("a")
    for disk, aside in away:
        aside.rename(disk)
    with kept.store.endpoint.database.engine.connect() as connection:
        assert len(connection.execute(select(freed_segments)).fetchall()) == 1
    assert kept.piece_count() == whole == 8
    assert trashed(kept, replace(NO_WINDOW, false_positives=1e-9)) == 4
    kept.read_all()


def test_nobody_waits_for_a_node_that_is_given_up(kept: KeptStore) -> None:
    """What was to be deleted there leaves the queue with it; should it be back, it is garbage."""
    kept.upload("a", 900)
    while not kept.pieces()[kept.node(0).id]:
        kept.upload("a", 900)
    disk = kept.disk(0)
    disk.rename(disk.with_name("away"))
    kept.delete("a")
    database = kept.store.endpoint.database
    sweep_store(kept.store)
    with database.engine.connect() as connection:
        assert len(connection.execute(select(freed_segments)).fetchall()) == 1
    repair_store(kept.store, RepairOptions(gone=(kept.node(0).id.hex(),)))
    sweep_store(kept.store)
    with database.engine.connect() as connection:
        assert connection.execute(select(freed_segments)).fetchall() == []
    disk.with_name("away").rename(disk)
    assert kept.piece_count() == 1
    repair_store(kept.store)
    assert trashed(kept, replace(NO_WINDOW, false_positives=1e-9)) == 1


def test_young_pieces_stay(plain: KeptStore) -> None:
    """They may belong to an upload that is under way."""
    garbage = plain.lay_garbage()
    plain.pass_days(2.9)
    report = collect_store(plain.store)
    assert report.trashed == 0
    assert sum(each.young + each.kept for each in report.nodes) == garbage
    plain.pass_days(0.2)
    assert trashed(plain, GcOptions(dry_run=True)) >= garbage // 2
    assert plain.piece_count() == garbage


def test_trash_is_restored_or_emptied(plain: KeptStore) -> None:
    """Nothing is deleted in the first step; after a week it is."""
    plain.upload("a")
    plain.lay_garbage(10)
    before = plain.pieces()
    plain.pass_days(4)
    gone = trashed(plain)
    assert gone > 0
    assert restored(plain, dry_run=True) == gone
    assert restored(plain) == gone
    assert plain.pieces() == before
    again = trashed(plain)
    plain.pass_days(6)
    assert sum(each.emptied for each in collect_store(plain.store).nodes) == 0
    plain.pass_days(3)
    emptied = [collect_store(plain.store) for _ in range(2)]
    assert sum(each.emptied for each in emptied[0].nodes) >= again > 0
    assert restored(plain) < again
    plain.read_all()


def test_restoring_leaves_what_is_there(plain: KeptStore) -> None:
    """A piece that was built anew meanwhile, or lies in the trash of two days: once, and whole."""
    node = plain.node(0)
    anew, twice = (piece_id(name, node.id, 0) for name in (b"anew", b"twice"))
    node.write(anew, [b"new"], None)
    for day in ("20250101", "20250102"):
        for piece in (anew, twice):
            node.root.write(f"trash/{day}/{piece.hex()}", day.encode())
    assert restored(plain) == 4
    assert plain.pieces()[node.id] == {anew, twice}
    assert b"".join(node.read(anew, 0, 3)) == b"new"
    assert b"".join(node.read(twice, 0, 8)) == b"20250101"
    assert restored(plain) == 0


def test_a_filter_is_followed_once(plain: KeptStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where whoever followed it was killed at the first piece: what came since is younger."""
    plain.lay_garbage(3)
    plain.pass_days(4)
    filters = make_filters(plain.store, replace(NO_WINDOW, false_positives=1e-9))
    node, now = plain.node(0), plain.clock.now()
    data = filters.by_node[node.id]
    monkeypatch.setattr(faults, "_faults", faults.parse("gc.moved:error"))
    with pytest.raises(InjectedFault):
        collect_garbage(node, data, filters.store_id, now)
    monkeypatch.undo()
    with pytest.raises(FailedPrecondition, match="newer filter"):
        collect_garbage(node, data, filters.store_id, now)
    assert len(plain.pieces()[node.id]) == 2


def test_a_clock_that_was_put_back_stops_no_collection(plain: KeptStore) -> None:
    """Nodes follow a filter only if it is of a newer run, whatever the time of the last one was."""
    plain.pass_days(1000)
    collect_store(plain.store)
    plain.pass_days(-996)
    plain.lay_garbage()
    report = collect_store(plain.store, replace(NO_WINDOW, false_positives=1e-9))
    assert [each.error for each in report.nodes] == [""] * 6
    assert report.trashed == 6


def test_a_wrongly_trashed_piece_is_brought_back(plain: KeptStore) -> None:
    """Were a living object's pieces ever taken away, restoring heals it."""
    plain.upload("a")
    empty = GcOptions(window=timedelta(0))
    filters = make_filters(plain.store, empty)
    now = plain.clock.now() + timedelta(days=1)
    for node in plain.store.nodes.direct():
        sent = PieceFilter.from_bytes(filters.by_node[node.id])
        nothing = PieceFilter(
            sent.store_id, node.id, sent.run, 2**62, BloomFilter(sent.pieces.shape)
        )
        collect_garbage(node, nothing.to_bytes(), filters.store_id, now, many=True)
    assert plain.piece_count() == 0
    restore_garbage(plain.store)
    plain.check()


def test_filters_that_do_not_fit_are_refused(plain: KeptStore) -> None:
    """Of another store or node, of an older run, damaged: the node keeps everything."""
    plain.lay_garbage()
    plain.pass_days(4)
    old = make_filters(plain.store, GcOptions())
    node = plain.node(0)
    data, now = old.by_node[node.id], plain.clock.now()
    for damaged in (b"", data[:-1], data[:50], bytes([data[0] ^ 1]) + data[1:], data[:-1] + b"\0"):
        with pytest.raises(IntegrityError):
            collect_garbage(node, damaged, old.store_id, now)
    sent = PieceFilter.from_bytes(data)
    other = PieceFilter(os.urandom(16), node.id, sent.run, sent.older_than, sent.pieces)
    with pytest.raises(FailedPrecondition, match="another store"):
        collect_garbage(node, other.to_bytes(), old.store_id, now)
    with pytest.raises(FailedPrecondition, match="another node"):
        collect_garbage(node, old.by_node[plain.node(1).id], old.store_id, now)
    assert plain.piece_count() == 6
    collect_store(plain.store)
    with pytest.raises(FailedPrecondition, match="newer filter"):
        collect_garbage(node, data, old.store_id, now)
    strange = PieceFilter(b"x" * 16, node.id, 2**62, sent.older_than, sent.pieces)
    with pytest.raises(FailedPrecondition, match="another store"):
        collect_garbage(node, strange.to_bytes(), b"x" * 16, now)


def test_pieces_of_unknown_age_stay(plain: KeptStore) -> None:
    """A root that tells no times has no piece that is old enough."""
    node = plain.node(0)

    def tell_no_times(call: Call, proceed: Callable[[Call], Any]) -> Any:
        done = proceed(call)
        if call.verb != "list":
            return done
        return (replace(each, last_modified=None) for each in done)

    timeless = Node(node.id, node.root.layer(tell_no_times), node.placement)
    plain.store.nodes._nodes[node.id] = timeless
    plain.lay_garbage(10)
    plain.pass_days(100)
    report = next(each for each in collect_store(plain.store).nodes if each.node == node.name)
    assert (report.error, report.trashed, report.kept + report.young) == ("", 0, 10)


def test_a_node_whose_clock_is_behind_keeps_everything(plain: KeptStore) -> None:
    """Its youngest piece looks like garbage there, also one that got its segment a moment ago."""
    node, disk = plain.node(0), plain.disk(0)

    def write_long_ago(call: Call, proceed: Callable[[Call], Any]) -> Any:
        done = proceed(call)
        for file in disk.rglob("*"):
            os.utime(file, (0, 0))
        return done

    slow = Node(node.id, node.root.layer(write_long_ago), node.placement)
    plain.store.nodes._nodes[node.id] = slow
    plain.lay_garbage(10)
    assert trashed(plain) == 0
    plain.pass_days(4)
    report = collect_store(plain.store)
    assert [each.node for each in report.nodes if "clock of node" in each.error] == [node.name]
    assert len(plain.pieces()[node.id]) == 10
    assert report.trashed > 20


def test_a_node_that_is_away_stops_no_other(plain: KeptStore) -> None:
    """Its garbage waits until it is back."""
    plain.lay_garbage(10)
    plain.pass_days(4)
    disk = plain.disk(1)
    disk.rename(disk.with_name("away"))
    report = collect_store(plain.store)
    assert [each.error != "" for each in report.nodes] == [
        node.id == plain.node(1).id for node in plain.store.nodes.direct()
    ]
    assert report.trashed > 30
    disk.with_name("away").rename(disk)
    assert any(each.node == plain.node(1).name and each.trashed for each in
               collect_store(plain.store).nodes)  # fmt: skip


def test_the_wrong_database_removes_nothing(plain: KeptStore) -> None:
    """Where most pieces are unknown somebody must say that this is meant."""
    node = plain.node(0)
    for number in range(115):
        node.write(piece_id(b"root", node.id, number), [b"x"], None)
    plain.pass_days(4)
    report = collect_store(plain.store)
    assert report.trashed == 0
    assert [each.node for each in report.nodes if "right database" in each.error] == [node.name]
    assert trashed(plain, GcOptions(many=True)) > 50


def test_nothing_goes_during_a_backup(plain: KeptStore) -> None:
    """A piece is kept where it is until the backup is done."""
    plain.lay_garbage()
    plain.pass_days(4)
    with hold_pieces(plain.store.endpoint.database):
        assert trashed(plain) == 0


def test_one_collects_at_a_time(kept: KeptStore) -> None:
    """A second process is refused while the first one runs, and nothing is harmed."""
    second = EmbeddedStore.open(kept.store.folder)
    refused: list[BaseException] = []

    def intrude(done: int, total: int) -> None:
        try:
            collect_store(second)
        except FailedPrecondition as error:
            refused.append(error)

    kept.upload("a")
    collect_store(kept.store, tell=intrude)
    second.close()
    assert refused
    kept.check()


@pytest.mark.parametrize("when", ["gc.filters", "gc.noted"])
def test_who_lost_its_lease_takes_nothing_away(
    plain: KeptStore, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Stopped for long before a node was asked, or before its first piece: another one collects."""
    plain.lay_garbage(3)
    plain.pass_days(4)
    before, point = plain.pieces(), faults.point

    def pass_its_time(step: str) -> None:
        if step == when:
            monkeypatch.setattr(lease_module, "LEASE_US", -1)
        point(step)

    monkeypatch.setattr(faults, "point", pass_its_time)
    with pytest.raises(FailedPrecondition, match="paused too long"):
        collect_store(plain.store)
    assert plain.pieces() == before


class Meddling(LocalRunner):
    """Something happens to the store before each range."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act

    def run(
        self, snapshot: Snapshot, job: ScanJob, ranges: Sequence[Range]
    ) -> Iterator[RangeResult]:
        for each in super().run(snapshot, job, ranges):
            self.act()
            yield each


def collect_meddled(kept: KeptStore, act: Callable[[], None], *, cut_off: bool = False) -> None:
    """A collection into which something comes; without ``cut_off`` no piece is too young to go."""
    database = kept.store.endpoint.database
    nodes = {each.alias: each.node_id for each in kept.store.endpoint.admin.nodes()}
    shapes = {alias: BloomShape.of(5000, random.getrandbits(64)) for alias in nodes}
    observer = PieceFilters(nodes, shapes)
    with open_snapshot(database) as snapshot:
        named = snapshot.taken_at
        cut = snapshot.cut(rows_each=2)
        run_scan(snapshot, [observer], runner=Meddling(act), ranges=cut)
    store_id, older = b"s" * 16, named if cut_off else 2**62
    for alias, each in observer.filters.items():
        node = next(one for one in kept.store.nodes.direct() if one.id == nodes[alias])
        with suppress(Unavailable):  # a disk that is gone has nothing to lose
            _collect(kept, node, PieceFilter(store_id, node.id, named, older, each))


def _collect(kept: KeptStore, node: Node, sent: PieceFilter) -> None:
    collect_garbage(node, sent.to_bytes(), sent.store_id, kept.clock.now(), many=True)


def test_no_interleaving_loses_a_piece(kept: KeptStore) -> None:
    """Copies and deletes of originals at any point of the scan: every object stays readable.

    The age cut-off is off: only the snapshot protects what a copy that is new has of old.
    """
    collect_under_copies(kept, random.Random(7))


def collect_under_copies(kept: KeptStore, chance: random.Random) -> None:
    """A dozen collections, each with copies and deletes between its ranges."""
    for number in range(8):
        kept.upload(f"o{number}", 1500)
    names = iter(range(10**6))

    def copy_and_delete() -> None:
        key = chance.choice(sorted(kept.contents))
        for _ in range(chance.randrange(3)):
            kept.copy(key, f"c{next(names)}")
        if len(kept.contents) > 4 and chance.random() < 0.7:
            kept.delete(key)

    for _ in range(12):
        collect_meddled(kept, copy_and_delete)
        kept.read_all()
        while len(kept.contents) > 10:
            kept.delete(chance.choice(sorted(kept.contents)))


def test_repair_and_exit_meanwhile_lose_nothing(kept: KeptStore) -> None:
    """New pieces are younger than the snapshot; the old list may be in the filter or not."""
    for number in range(4):
        kept.upload(f"o{number}", 1500)
        kept.copy(f"o{number}", f"c{number}")
    steps = iter(range(10**6))

    def heal() -> None:
        match next(steps):
            case 0:
                exit_node(kept.store, kept.node(0).id.hex())
            case 1:
                kept.lose_node(1)
                gone = RepairOptions(gone=(kept.node(1).id.hex(),))
                assert repair_store(kept.store, gone).lost_segments == 0
            case 2:
                kept.delete("o0")
            case _:
                pass

    database = kept.store.endpoint.database
    with open_snapshot(database) as snapshot:
        assert len(snapshot.cut(rows_each=2)) > 3
    for _ in range(4):
        collect_meddled(kept, heal, cut_off=True)
        kept.read_all()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_thousand_rounds_lose_nothing(kept: KeptStore) -> None:
    """The same for a thousand rounds, each dozen of them another."""
    for seed in range(DOZENS):
        collect_under_copies(kept, random.Random(seed))


def test_the_cut_off_alone_would_lose_pieces(plain: KeptStore) -> None:
    """The test above can fail: rows of two moments let a living object's pieces go."""
    plain.upload("a", 1500)
    database = plain.store.endpoint.database
    nodes = {each.alias: each.node_id for each in plain.store.endpoint.admin.nodes()}
    shapes = {alias: BloomShape.of(100, 1) for alias in nodes}
    seen: list[Any] = []

    def read(streams: Callable[[bytes], bool]) -> None:
        with open_snapshot(database) as snapshot, snapshot.reader() as reader:
            for rows in reader.read(snapshot.cut()[0], ("stream_id", *PieceFilters.columns)):
                seen.extend(row[1:] for row in rows if streams(row[0]))

    (original,) = {row[0] for row in _streams(plain)}
    # The copy's rows are read while it has no pieces, the original's when it is gone.
    plain.copy("a", "b")
    read(lambda stream: stream != original)
    plain.delete("a")
    read(lambda stream: stream == original)
    observer = PieceFilters(nodes, shapes)
    fork = observer.fork()
    fork.process(dict(zip(PieceFilters.columns, zip(*seen, strict=True), strict=True)))
    assert fork.result() == {}
    plain.read_all()


def _streams(kept: KeptStore) -> list[Any]:
    with open_snapshot(kept.store.endpoint.database) as snapshot:
        return snapshot.query("SELECT DISTINCT stream_id FROM segments")


def test_filters_hold_what_was_put_in() -> None:
    """No false negative, about a tenth false positives, joined by OR, refused where unlike."""
    shape = BloomShape.of(20_000, 99)
    pieces = [piece_id(os.urandom(32), b"n" * 32, 0) for _ in range(40_000)]
    one, two, whole = BloomFilter(shape), BloomFilter(shape), BloomFilter(shape)
    words = words_of(b"".join(each[1:] for each in pieces))
    one.add(words[: 8000 * WORDS_SIZE])
    two.add(words[8000 * WORDS_SIZE : 20_000 * WORDS_SIZE])
    whole.add(words[: 20_000 * WORDS_SIZE])
    one.join(two.table)
    assert one.table == whole.table == BloomFilter(shape, whole.table).table
    assert whole.holds(pieces[:20_000]).all()
    assert 0.05 < whole.holds(pieces[20_000:]).mean() < 0.15
    assert len(whole.table) * 8 / 20_000 < 4.9


def test_the_trash_is_kept_for_its_whole_time(plain: KeptStore) -> None:
    """What came in the last minute of a day stays for seven days from then; then it goes."""
    node, first = plain.node(0), datetime(2025, 1, 9, tzinfo=UTC)
    node.root.write(f"trash/20250101/{piece_id(b'old', node.id, 0).hex()}", b"x")
    assert empty_trash(node, first - timedelta(seconds=1)) == 0
    assert empty_trash(node, first) == 1


def test_emptying_passes_over_other_files(plain: KeptStore) -> None:
    """What somebody else put into the trash is neither deleted nor restored."""
    node = plain.node(0)
    node.root.write("trash/20200101/readme", b"mine")
    assert empty_trash(node, plain.clock.now()) == 0
    restore_garbage(plain.store)
    assert node.root.read("trash/20200101/readme") == b"mine"


def test_what_killed_writes_left_goes(plain: KeptStore) -> None:
    """A temporary file that nobody writes any more goes after a day, and not before."""
    node = plain.node(0)
    left = plain.disk(0) / "pieces" / ".calque-0123456789abcdef01234567-piece.tmp"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half a piece")
    collect_store(plain.store, NO_WINDOW)
    assert left.exists()
    plain.pass_days(2)
    assert remove_unfinished(node, plain.clock.now(), dry_run=True) == 1
    collect_store(plain.store)
    assert not left.exists()
