"""Is the metabase whole? Reads everything in one snapshot and names what is wrong.

What must hold, and is checked here:

1. every segment belongs to an object or lends its pieces to a slice, every object to a bucket,
   every bucket to a project;
2. a committed object has as many segments and bytes as its row says, and its offsets run on;
3. a segment without pieces, inline data and zero size is borrowed: its stream has a
   reference, and the ancestor has pieces at that position;
4. an ancestor is an original (no chains), a committed object, with at most 100 copies;
5. every reference belongs to an object, which borrows at least one segment;
6. a project's usage is the sum of its committed objects;
7. copies expire with their ancestor; packed pieces and what is needed to find them (redundancy,
   size, root piece id) can be read, and name known nodes;
8. stored keys and objects belong to an operation that is still collecting;
9. pieces that wait to be deleted belong to no segment;
10. a slice is a segment of an object, lies within a segment that has pieces, and expires with it.

Rows are compared with rows by the database, which does not need them all in memory; what is packed
in a row is looked at here, some rows at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from calque.errors import IntegrityError
from calque.store.metabase.engine.database import Database
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.packed_pieces import unpack
from calque.store.metabase.model.records import ROOT_PIECE_ID_SIZE, readable_redundancy
from calque.store.metabase.scan import Snapshot, open_snapshot

MOST = 1000
"""Findings of one kind that are named."""

_PIECELESS = "s.remote_alias_pieces IS NULL AND s.inline_data IS NULL AND s.encrypted_size > 0"
_BORROWED = (
    f"{_PIECELESS} AND NOT EXISTS (SELECT 1 FROM segment_slices l "
    "WHERE l.stream_id = s.stream_id AND l.position = s.position)"
)
_SLICED = (
    "SELECT l.stream_id, l.position FROM segment_slices l JOIN segments s "
    "ON s.stream_id = l.stream_id AND s.position = l.position"
)
_SOURCE = (
    "JOIN segments a ON a.stream_id = l.source_stream_id AND a.position = l.source_position "
    "AND a.remote_alias_pieces IS NOT NULL"
)
_OWN = "FROM segments s WHERE s.stream_id = o.stream_id"

CHECKS: Mapping[str, str] = {
    "segments without object": "SELECT DISTINCT s.stream_id FROM segments s WHERE NOT EXISTS "
    "(SELECT 1 FROM objects o WHERE o.stream_id = s.stream_id) AND NOT EXISTS (SELECT 1 FROM "
    "segment_slices l WHERE l.source_stream_id = s.stream_id AND l.source_position = s.position)",
    "object without bucket": "SELECT o.stream_id FROM objects o WHERE NOT EXISTS (SELECT 1 FROM "
    "buckets b WHERE b.project_id = o.project_id AND b.name = o.bucket_name)",
    "bucket without project": "SELECT b.name FROM buckets b WHERE NOT EXISTS "
    "(SELECT 1 FROM projects p WHERE p.project_id = b.project_id)",
    "wrong totals": "SELECT * FROM (SELECT o.stream_id, o.segment_count, o.total_plain_size, "
    f"o.total_encrypted_size, (SELECT count(*) {_OWN}) AS segments, "
    f"(SELECT coalesce(sum(s.plain_size), 0) {_OWN}) AS plain, "
    f"(SELECT coalesce(sum(s.encrypted_size), 0) {_OWN}) AS encrypted "
    "FROM objects o WHERE o.status = 3) AS counted WHERE segment_count <> segments "
    "OR total_plain_size <> plain OR total_encrypted_size <> encrypted",
    "wrong offset": "SELECT r.stream_id, r.position FROM (SELECT stream_id, position, "
    "plain_offset, sum(plain_size) OVER (PARTITION BY stream_id ORDER BY position) - plain_size "
    "AS expected FROM segments) AS r WHERE r.plain_offset <> r.expected AND EXISTS "
    "(SELECT 1 FROM objects o WHERE o.stream_id = r.stream_id AND o.status = 3)",
    "segment expires apart from its object": "SELECT DISTINCT s.stream_id FROM segments s "
    "JOIN objects o ON o.stream_id = s.stream_id WHERE o.status = 3 "
    "AND coalesce(s.expires_at, -1) <> coalesce(o.expires_at, -1)",
    "orphaned reference": "SELECT c.stream_id, c.ancestor_stream_id FROM segment_copies c "
    "WHERE NOT EXISTS (SELECT 1 FROM objects o WHERE o.stream_id = c.stream_id)",
    "reference that borrows nothing": "SELECT c.stream_id, c.ancestor_stream_id FROM "
    "segment_copies c WHERE EXISTS (SELECT 1 FROM objects o WHERE o.stream_id = c.stream_id) AND "
    f"NOT EXISTS (SELECT 1 FROM segments s WHERE s.stream_id = c.stream_id AND {_BORROWED})",
    "dangling ancestor": "SELECT c.stream_id, c.ancestor_stream_id FROM segment_copies c WHERE NOT "
    "EXISTS (SELECT 1 FROM objects o WHERE o.stream_id = c.ancestor_stream_id AND o.status = 3)",
    "copy expires apart from its ancestor": "SELECT c.stream_id, c.ancestor_stream_id FROM "
    "segment_copies c JOIN objects o ON o.stream_id = c.stream_id JOIN objects a "
    "ON a.stream_id = c.ancestor_stream_id WHERE a.status = 3 "
    "AND coalesce(o.expires_at, -1) <> coalesce(a.expires_at, -1)",
    "chained ancestor": "SELECT c.stream_id, c.ancestor_stream_id FROM segment_copies c WHERE "
    "EXISTS (SELECT 1 FROM segment_copies d WHERE d.stream_id = c.ancestor_stream_id)",
    "too many copies": "SELECT ancestor_stream_id, count(*) FROM (SELECT ancestor_stream_id, "
    "stream_id FROM segment_copies UNION SELECT source_stream_id, stream_id FROM segment_slices) "
    f"AS h GROUP BY ancestor_stream_id HAVING count(*) > {verify.MAX_LIVE_COPIES}",
    "piece-less segment without ancestor": "SELECT s.stream_id, s.position FROM segments s "
    f"WHERE {_BORROWED} AND NOT EXISTS (SELECT 1 FROM segment_copies c JOIN segments a "
    "ON a.stream_id = c.ancestor_stream_id WHERE c.stream_id = s.stream_id "
    "AND a.position = s.position AND a.remote_alias_pieces IS NOT NULL)",
    "root piece id differs from the ancestor's": "SELECT s.stream_id, s.position FROM segments s "
    "JOIN segment_copies c ON c.stream_id = s.stream_id JOIN segments a "
    "ON a.stream_id = c.ancestor_stream_id AND a.position = s.position "
    f"WHERE {_BORROWED} AND a.remote_alias_pieces IS NOT NULL "
    "AND a.root_piece_id <> s.root_piece_id",
    "orphaned slice": "SELECT l.stream_id, l.position FROM segment_slices l WHERE NOT EXISTS "
    "(SELECT 1 FROM segments s JOIN objects o ON o.stream_id = s.stream_id "
    "WHERE s.stream_id = l.stream_id AND s.position = l.position)",
    "slice that is no segment's": f"{_SLICED} WHERE NOT ({_PIECELESS}) OR s.plain_size <> l.length",
    "slice of a segment without pieces": "SELECT l.stream_id, l.position FROM segment_slices l "
    "WHERE NOT EXISTS (SELECT 1 FROM segments a WHERE a.stream_id = l.source_stream_id "
    "AND a.position = l.source_position AND a.remote_alias_pieces IS NOT NULL)",
    "slice beyond its source": f"SELECT l.stream_id, l.position FROM segment_slices l {_SOURCE} "
    "WHERE l.skip < 0 OR l.length < 1 OR l.skip + l.length > a.plain_size",
    "root piece id differs from the source's": f"{_SLICED} {_SOURCE} "
    "WHERE s.root_piece_id <> a.root_piece_id",
    "slice expires apart from its source": f"{_SLICED} {_SOURCE} "
    "WHERE coalesce(s.expires_at, -1) <> coalesce(a.expires_at, -1)",
    "segment both inline and remote": "SELECT stream_id, position FROM segments "
    "WHERE remote_alias_pieces IS NOT NULL AND inline_data IS NOT NULL",
    "copy that holds pieces": "SELECT s.stream_id, s.position FROM segments s "
    "JOIN segment_copies c ON c.stream_id = s.stream_id WHERE s.remote_alias_pieces IS NOT NULL",
    "pieces held twice": "SELECT root_piece_id FROM segments WHERE remote_alias_pieces IS NOT NULL "
    "GROUP BY root_piece_id HAVING count(*) > 1",
    "pieces held and to be deleted": "SELECT DISTINCT s.root_piece_id FROM segments s WHERE "
    "s.remote_alias_pieces IS NOT NULL AND EXISTS "
    "(SELECT 1 FROM freed_segments f WHERE f.root_piece_id = s.root_piece_id)",
    "quota drift": "SELECT p.project_id, coalesce(u.bytes, 0), coalesce(u.segments, 0), "
    "coalesce(u.objects, 0), coalesce(o.bytes, 0), coalesce(o.segments, 0), "
    "coalesce(o.objects, 0) FROM projects p LEFT JOIN (SELECT project_id, sum(bytes) AS bytes, "
    "sum(segments) AS segments, sum(objects) AS objects FROM project_usage GROUP BY project_id) "
    "AS u ON u.project_id = p.project_id LEFT JOIN (SELECT project_id, "
    "sum(total_encrypted_size) AS bytes, sum(segment_count) AS segments, count(*) AS objects "
    "FROM objects WHERE status = 3 GROUP BY project_id) AS o ON o.project_id = p.project_id "
    "WHERE coalesce(u.bytes, 0) <> coalesce(o.bytes, 0) OR coalesce(u.segments, 0) <> "
    "coalesce(o.segments, 0) OR coalesce(u.objects, 0) <> coalesce(o.objects, 0)",
    "keys without operation": "SELECT DISTINCT k.operation_id FROM operation_keys k WHERE NOT "
    "EXISTS (SELECT 1 FROM operations p WHERE p.operation_id = k.operation_id AND p.state = 1)",
    "objects without operation": "SELECT DISTINCT k.operation_id FROM operation_objects k WHERE "
    "NOT EXISTS (SELECT 1 FROM operations p WHERE p.operation_id = k.operation_id "
    "AND p.state = 1)",
}
"""What must find no row, by the name of what is wrong; a row says where."""


class Finding(NamedTuple):
    """One thing that is wrong: a short kind, and where."""

    kind: str
    where: str


def fsck(database: Database) -> list[Finding]:
    """Everything that is wrong; an empty list means whole."""
    with open_snapshot(database) as snapshot:
        packed = PackedRows(known_aliases(snapshot))
        fork = packed.fork()
        with snapshot.reader() as reader:
            for each in snapshot.cut():
                for rows in reader.read(each, packed.columns):
                    fork.process(dict(zip(packed.columns, zip(*rows, strict=True), strict=True)))
        return [*compare_rows(snapshot), *fork.result()]


def compare_rows(snapshot: Snapshot) -> Iterator[Finding]:
    """Rows against rows, by the database; of each kind the first thousand."""
    for kind, query in CHECKS.items():
        for row in snapshot.query(f"{query} LIMIT {MOST}"):
            yield Finding(kind, _where(row))


def known_aliases(snapshot: Snapshot) -> frozenset[int]:
    """The aliases of the nodes that the snapshot knows."""
    return frozenset(int(row[0]) for row in snapshot.query("SELECT alias FROM nodes"))


@dataclass
class PackedRows:
    """An observer of what is packed in the rows of segments."""

    nodes: Collection[int]
    columns: tuple[str, ...] = (
        "stream_id",
        "position",
        "root_piece_id",
        "encrypted_size",
        "redundancy",
        "remote_alias_pieces",
    )
    findings: list[Finding] = field(default_factory=list)

    def start(self, snapshot: Snapshot) -> None:
        """Nothing to prepare."""

    def fork(self) -> _PackedFork:
        return _PackedFork(frozenset(self.nodes))

    def join(self, result: Iterable[Finding]) -> None:
        self.findings = [*self.findings, *result][:MOST]

    def finish(self) -> None:
        self.findings.sort()


class _PackedFork:
    def __init__(self, nodes: frozenset[int]) -> None:
        self._nodes = nodes
        self._findings: list[Finding] = []

    def process(self, batch: Mapping[str, Sequence[Any]]) -> None:
        for stream_id, position, root, size, redundancy, packed in zip(
            *(batch[name] for name in PackedRows.columns), strict=True
        ):
            kind = None if packed is None else self._problem(root, size, redundancy, packed)
            if kind is not None and len(self._findings) < MOST:
                self._findings.append(Finding(kind, _where((stream_id, position))))

    def result(self) -> list[Finding]:
        return self._findings

    def _problem(self, root: bytes, size: int, redundancy: int, packed: bytes) -> str | None:
        scheme = readable_redundancy(redundancy)
        if scheme is None:
            return "damaged redundancy"
        if len(root) != ROOT_PIECE_ID_SIZE:
            return "damaged root piece id"
        if size < 1:
            return "damaged size"
        try:
            placed = unpack(packed)
        except IntegrityError:
            return "damaged pieces"
        if placed[-1][0] >= scheme.total:
            return "damaged pieces"
        unknown = {alias for _, alias in placed} - self._nodes
        return "pieces on unknown nodes" if unknown else None


def _where(row: Sequence[Any]) -> str:
    """Ids in hex, numbers as they are."""
    first, *rest = (
        bytes(each).hex() if isinstance(each, bytes | memoryview) else str(each) for each in row
    )
    return f"{first}: {' '.join(rest)}" if rest else first
