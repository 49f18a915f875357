"""How much is stored: logical, physical and saved bytes, by bucket and by node, hour by hour.

Logical is what users have: every object, copies in full. Physical is what is kept of it: each
segment once, whoever shares it. Saved is what copies borrow. Uploads that are not committed belong
to no object yet, and what outlived its object, because ranges of it are parts of others, belongs to
none any more: so ``logical + pending + outlived = physical + saved``. On nodes redundancy is added
to the physical bytes: what a node has is counted as it lies on its disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from calque import faults
from calque.errors import InvalidInput
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.model.packed_pieces import unpack_if_readable
from calque.store.metabase.model.records import Redundancy as StoredRedundancy
from calque.store.metabase.scan import Snapshot
from calque.store.metabase.upkeep.last_runs import note_run
from calque.store.metabase.upkeep.lease import hold_lease
from calque.store.metabase.upkeep.usage_history import UsageRow, hour_of, record_usage
from calque.store.nodes.erasure import Coder, Redundancy
from calque.store.upkeep.engines import ScanOptions, open_scan
from calque.store.upkeep.scan import Batch, Over, ScanReport, Tell, run_scan

SERVICE = "tally"

BUCKETS = (
    "SELECT project_id, bucket_name, count(*), sum(segment_count), sum(total_encrypted_size) "
    "FROM objects WHERE status = 3 GROUP BY project_id, bucket_name"
)

# Only what lends to slices can be without an object.
OUTLIVED = (
    "SELECT coalesce(sum(s.encrypted_size), 0) FROM (SELECT DISTINCT source_stream_id, "
    "source_position FROM segment_slices) AS l JOIN segments s ON s.stream_id = l.source_stream_id "
    "AND s.position = l.source_position WHERE NOT EXISTS (SELECT 1 FROM objects o "
    "WHERE o.stream_id = s.stream_id)"
)


class SegmentSums(NamedTuple):
    """Sums over segments; pieces and their bytes by the alias of the node."""

    physical: int
    saved: int
    pieces: Counter[int]
    bytes: Counter[int]


@dataclass
class SegmentTally:
    """An observer that adds up what segments keep and what copies borrow."""

    columns: tuple[str, ...] = (
        "encrypted_size",
        "redundancy",
        "remote_alias_pieces",
        "is_inline",
    )
    physical: int = 0
    saved: int = 0
    pieces: Counter[int] = field(default_factory=Counter)
    bytes: Counter[int] = field(default_factory=Counter)

    def start(self, snapshot: Snapshot) -> None:
        """Nothing to prepare."""

    def fork(self) -> _TallyFork:
        return _TallyFork()

    def join(self, result: SegmentSums) -> None:
        self.physical += result.physical
        self.saved += result.saved
        self.pieces.update(result.pieces)
        self.bytes.update(result.bytes)

    def finish(self) -> None:
        """The sums are complete."""


class _TallyFork:
    def __init__(self) -> None:
        self._physical = self._saved = 0
        self._pieces: Counter[int] = Counter()
        self._bytes: Counter[int] = Counter()

    def process(self, batch: Batch) -> None:
        for size, redundancy, packed, inline in zip(
            *(batch[name] for name in SegmentTally.columns), strict=True
        ):
            if packed is None and not inline:
                self._saved += size
                continue
            self._physical += size
            if packed is not None:
                each = piece_size(redundancy, size)
                for _, alias in unpack_if_readable(packed):
                    self._pieces[alias] += 1
                    self._bytes[alias] += each

    def result(self) -> SegmentSums:
        return SegmentSums(self._physical, self._saved, self._pieces, self._bytes)


@dataclass(frozen=True, slots=True)
class BucketTally:
    """What one bucket holds."""

    project: str
    bucket: str
    objects: int
    segments: int
    logical_bytes: int


@dataclass(frozen=True, slots=True)
class NodeTally:
    """What one node holds, as it lies on its disk."""

    node: str
    pieces: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TallyReport:
    """What is stored in all, by bucket and by node."""

    objects: int
    segments: int
    logical_bytes: int
    physical_bytes: int
    saved_bytes: int
    pending_bytes: int
    outlived_bytes: int
    node_bytes: int
    buckets: tuple[BucketTally, ...]
    nodes: tuple[NodeTally, ...]
    scan: ScanReport


def tally_store(
    store: EmbeddedStore,
    *,
    dry_run: bool = False,
    scan: ScanOptions | None = None,
    tell: Tell | None = None,
    over: Over = lambda: False,
) -> TallyReport:
    """Count everything in one snapshot, and record it as the usage of this hour."""
    database = store.endpoint.database
    with hold_lease(database, SERVICE):
        report = count_usage(database, scan, tell=tell, over=over)
        faults.point("tally.counted")
        if not dry_run:
            record_usage(database, _rows(report))
            note_run(
                database,
                SERVICE,
                {
                    name: getattr(report, name)
                    for name in ("logical_bytes", "physical_bytes", "saved_bytes", "node_bytes")
                },
            )
    return report


def count_usage(
    database: Database,
    scan: ScanOptions | None = None,
    *,
    tell: Tell | None = None,
    over: Over = lambda: False,
) -> TallyReport:
    """Count everything in one snapshot; nothing is recorded."""
    options = scan or ScanOptions()
    with open_scan(database, options) as (snapshot, runner):
        observer = SegmentTally()
        ranges = snapshot.cut(rows_each=options.range_rows)
        report = run_scan(snapshot, [observer], runner=runner, ranges=ranges, tell=tell, over=over)
        buckets = [
            BucketTally(bytes(project).hex(), name, int(count), int(segments), int(size))
            for project, name, count, segments, size in snapshot.query(BUCKETS)
        ]
        outlived = int(snapshot.query(OUTLIVED)[0][0])
    nodes = {each.alias: each.node_id for each in Nodes(database).all()}
    buckets.sort(key=lambda each: (each.project, each.bucket))
    return _report(observer, buckets, outlived, nodes, report)


def _report(
    observer: SegmentTally,
    buckets: list[BucketTally],
    outlived: int,
    nodes: Mapping[int, bytes],
    scan: ScanReport,
) -> TallyReport:
    logical = sum(each.logical_bytes for each in buckets)
    return TallyReport(
        objects=sum(each.objects for each in buckets),
        segments=sum(each.segments for each in buckets),
        logical_bytes=logical,
        physical_bytes=observer.physical,
        saved_bytes=observer.saved,
        pending_bytes=observer.physical + observer.saved - logical - outlived,
        outlived_bytes=outlived,
        node_bytes=observer.bytes.total(),
        buckets=tuple(buckets),
        nodes=tuple(
            NodeTally(nodes[alias].hex(), observer.pieces[alias], observer.bytes[alias])
            for alias in sorted(nodes)
        ),
        scan=scan,
    )


def _rows(report: TallyReport) -> list[UsageRow]:
    hour = hour_of(report.scan.taken_at)
    whole = UsageRow(
        hour,
        "store",
        objects=report.objects,
        segments=report.segments,
        pieces=sum(each.pieces for each in report.nodes),
        logical_bytes=report.logical_bytes,
        physical_bytes=report.physical_bytes,
        saved_bytes=report.saved_bytes,
    )
    return [
        whole,
        *(
            UsageRow(
                hour,
                "bucket",
                bytes.fromhex(each.project),
                each.bucket,
                objects=each.objects,
                segments=each.segments,
                logical_bytes=each.logical_bytes,
            )
            for each in report.buckets
        ),
        *(
            UsageRow(hour, "node", name=each.node, pieces=each.pieces, physical_bytes=each.bytes)
            for each in report.nodes
        ),
    ]


@lru_cache(maxsize=65_536)
def piece_size(redundancy: int, encrypted_size: int) -> int:
    """Bytes of each piece of a segment, by the numbers of its row; 0 where those are damaged."""
    scheme = StoredRedundancy.decode(redundancy)
    try:
        return Coder(Redundancy(**scheme._asdict())).piece_size(encrypted_size)
    except InvalidInput:
        return 0
