"""The tally equals a recount from scratch, whatever was done before."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from typer.testing import CliRunner

from calque.cli.main import app
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.scan import open_snapshot
from calque.store.metabase.upkeep.usage_history import HOUR_US, last_hour, read_usage
from calque.store.nodes.erasure import Coder
from calque.store.upkeep.engines import ScanOptions
from calque.store.upkeep.tally import TallyReport, count_usage, tally_store
from tests.store.upkeep.conftest import TWO_OF_FOUR
from tests.store.upkeep.kept_store import BUCKET, KeptStore

SMALL_RANGES = ScanOptions(range_rows=3)


def recount(kept: KeptStore) -> dict[str, Any]:
    """The same by the plainest way: every row in memory, and the pieces on the disks."""
    with open_snapshot(kept.store.endpoint.database) as snapshot:
        segments = snapshot.query(
            "SELECT encrypted_size, remote_alias_pieces, inline_data FROM segments"
        )
        objects = snapshot.query(
            "SELECT segment_count, total_encrypted_size FROM objects WHERE status = 3"
        )
    nodes, coder = Nodes(kept.store.endpoint.database), Coder(TWO_OF_FOUR)
    pieces: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for size, packed, _ in segments:
        for _, record in nodes.unpack(packed) if packed else ():
            pieces[record.node_id.hex()] += 1
            sizes[record.node_id.hex()] += coder.piece_size(size)
    return {
        "objects": len(objects),
        "segments": sum(row[0] for row in objects),
        "logical_bytes": sum(row[1] for row in objects),
        "physical_bytes": sum(row[0] for row in segments if row[1] or row[2] is not None),
        "saved_bytes": sum(row[0] for row in segments if not row[1] and row[2] is None),
        "nodes": {name: (pieces[name], sizes[name]) for name in pieces},
    }


def shown(report: TallyReport) -> dict[str, Any]:
    return {
        "objects": report.objects,
        "segments": report.segments,
        "logical_bytes": report.logical_bytes,
        "physical_bytes": report.physical_bytes,
        "saved_bytes": report.saved_bytes,
        "nodes": {e.node: (e.pieces, e.bytes) for e in report.nodes if e.pieces},
    }


def test_a_tally_is_a_recount(kept: KeptStore) -> None:
    """Uploads, copies, deletes and promotions in any order; the pieces are those on the disks."""
    chance = random.Random(5)
    for number in range(25):
        key = chance.choice(sorted(kept.contents) or [""])
        what = chance.randrange(4) if kept.contents else 0
        if what in (0, 1):
            kept.upload(f"o{number}", chance.choice((0, 10, 900, 2500)))
        elif what == 2:
            kept.copy(key, f"c{number}")
        else:
            kept.delete(key)
        if number % 5 == 4:
            assert shown(count_usage(kept.store.endpoint.database, SMALL_RANGES)) == recount(kept)
    report = count_usage(kept.store.endpoint.database)
    on_disks = {
        node.id.hex(): (len(found), sum(each.size for each in found))
        for node in kept.store.nodes.direct()
        if (found := list(node.pieces()))
    }
    assert shown(report)["nodes"] == on_disks
    assert report.pending_bytes == 0


def test_copies_count_in_full_and_are_saved(plain: KeptStore) -> None:
    """N copies are N objects and N times the bytes; what they share is shown apart."""
    plain.upload("a")
    one = count_usage(plain.store.endpoint.database)
    for number in range(4):
        plain.copy("a", f"c{number}")
    five = count_usage(plain.store.endpoint.database)
    assert (five.objects, five.logical_bytes) == (5, 5 * one.logical_bytes)
    assert (five.physical_bytes, five.node_bytes) == (one.physical_bytes, one.node_bytes)
    assert five.saved_bytes == 4 * one.physical_bytes
    upload = plain.project.begin_multipart(BUCKET, "open")
    upload.upload_part(1, bytes(2000))
    pending = count_usage(plain.store.endpoint.database)
    assert pending.pending_bytes == pending.physical_bytes - one.physical_bytes > 2000


def test_what_outlives_its_object_is_not_pending(kept: KeptStore) -> None:
    """A segment that only ranges need is counted apart, until the last of them goes."""
    kept.upload("a", 2500)
    upload = kept.project.begin_multipart(BUCKET, "ranges")
    upload.copy_part(1, BUCKET, "a", offset=100, length=500)
    upload.commit()
    kept.contents["ranges"] = kept.contents["a"][100:600]
    whole = count_usage(kept.store.endpoint.database)
    assert (whole.pending_bytes, whole.outlived_bytes) == (0, 0)
    kept.delete("a")
    left = count_usage(kept.store.endpoint.database)
    assert (left.pending_bytes, left.outlived_bytes) == (0, left.physical_bytes)
    assert left.physical_bytes > 1000
    assert left.saved_bytes == left.logical_bytes
    kept.check()
    kept.delete("ranges")
    empty = count_usage(kept.store.endpoint.database)
    assert (empty.physical_bytes, empty.outlived_bytes, empty.pending_bytes) == (0, 0, 0)


def test_usage_is_recorded_by_the_hour(kept: KeptStore) -> None:
    """Twice in an hour is one record; a dry run is none."""
    database = kept.store.endpoint.database
    kept.upload("a")
    tally_store(kept.store, dry_run=True)
    assert last_hour(database) is None
    for _ in range(2):
        first = tally_store(kept.store)
    kept.upload("b")
    kept.pass_days(1)
    second = tally_store(kept.store)
    whole = read_usage(database, "store", 0, 2**62)
    assert [row.logical_bytes for row in whole] == [first.logical_bytes, second.logical_bytes]
    assert all(row.recorded_at % HOUR_US == 0 for row in whole)
    buckets = read_usage(database, "bucket", whole[1].recorded_at, 2**62)
    assert [(row.name, row.objects) for row in buckets] == [(BUCKET, 2)]
    nodes = read_usage(database, "node", whole[1].recorded_at, 2**62)
    assert sum(row.pieces for row in nodes) == whole[1].pieces == kept.piece_count()


def test_the_command_tells_it(plain: KeptStore) -> None:
    """Tables for people, JSON for programs, and the history."""
    plain.upload("a")
    plain.copy("a", "b")
    folder = str(plain.store.folder)
    done = CliRunner().invoke(app, ["store", "tally", folder, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["objects"], told["saved_bytes"]) == (2, told["physical_bytes"])
    done = CliRunner().invoke(app, ["store", "tally", folder])
    assert "saved" in done.stdout
    done = CliRunner().invoke(app, ["store", "tally", folder, "--history", "1", "--json"])
    assert [row["logical_bytes"] for row in json.loads(done.stdout)] == [told["logical_bytes"]]
