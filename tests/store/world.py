"""A small world around a metabase: nodes that really keep bytes, and every row to compare."""

from __future__ import annotations

import itertools
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Select, Table, select

from calque.store.metabase.accounts.create_bucket import CreateBucket, create_bucket
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.accounts.projects import create_project
from calque.store.metabase.copies.begin_copy import BeginCopy, begin_copy
from calque.store.metabase.copies.finish_copy import FinishCopy, finish_copy
from calque.store.metabase.copies.finish_move import FinishMove, finish_move
from calque.store.metabase.copies.operations import Operation
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.conditions import NO_CONDITIONS, Conditions
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import (
    NO_METADATA,
    Encryption,
    FreedSegment,
    ObjectLocation,
    ObjectRecord,
    Position,
    Redundancy,
    SegmentKey,
    WrappedMetadata,
)
from calque.store.metabase.model.schema import metadata
from calque.store.metabase.objects.begin_object import BeginObject, begin_object
from calque.store.metabase.objects.commit_object import CommitObject, commit_object
from calque.store.metabase.objects.commit_segment import CommitSegment, commit_segment
from calque.store.metabase.objects.copy_part import CopyPart, PartSlice, copy_part
from calque.store.metabase.objects.delete_batch import (
    BatchResult,
    DeleteBucket,
    delete_bucket,
)
from calque.store.metabase.objects.delete_object import DeleteObject, delete_object
from calque.store.metabase.objects.freed_segments import settle_freed
from calque.store.metabase.objects.get_object import get_object
from calque.store.metabase.objects.list_segments import ListSegments, list_segments

REMOTE = "remote"
INLINE = "inline"
HOUR_US = 3600 * 1_000_000
START_US = 1_800_000_000_000_000
NODES = tuple(bytes([number]) * 32 for number in (1, 2, 3))
SCHEME = Redundancy(256, 1, 1, 2, 3)
ENCRYPTION = Encryption(2, 4096)

TableRows = dict[str, list[tuple[Any, ...]]]


def make_metabase(url: str) -> None:
    """The tables of a metabase in a new database."""
    database = Database.open(url)
    migrate(database)
    database.close()


def lay_metabase(file: Path) -> None:
    """The same as a file of SQLite, without the twenty statements that make it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(_new_metabase())


@cache
def _new_metabase() -> bytes:
    with tempfile.TemporaryDirectory(prefix="calque-metabase-") as folder:
        file = Path(folder) / "meta.db"
        make_metabase(f"sqlite:///{file}")
        return file.read_bytes()


class Clock:
    """A time that goes on by a millisecond at every look, and by hand."""

    def __init__(self) -> None:
        self._ticks: Iterator[int] = itertools.count(START_US, 1000)
        self._offset = 0

    def __call__(self) -> int:
        return next(self._ticks) + self._offset

    def advance(self, microseconds: int) -> None:
        """Let time pass."""
        self._offset += microseconds

    def stop_at(self, microseconds: int) -> None:
        """From now on it is this very moment."""
        self._ticks = itertools.repeat(microseconds)
        self._offset = 0


@dataclass
class Layout:
    """The segments of an object to be uploaded: position and kind of each."""

    parts: Sequence[tuple[tuple[int, int], str]]

    @classmethod
    def of(cls, *kinds: str) -> Layout:
        return cls([((0, number), kind) for number, kind in enumerate(kinds)])


EMPTY = Layout.of()
ONE_INLINE = Layout.of(INLINE)
ONE_REMOTE = Layout.of(REMOTE)
WITH_TAIL = Layout.of(REMOTE, INLINE)
THREE_REMOTE = Layout.of(REMOTE, REMOTE, REMOTE)
MULTIPART = Layout([((7, 0), REMOTE), ((1, 0), REMOTE), ((5, 1), REMOTE), ((5, 0), REMOTE)])
LAYOUTS = {
    "empty": EMPTY,
    "one inline": ONE_INLINE,
    "one remote": ONE_REMOTE,
    "remote with inline tail": WITH_TAIL,
    "three remote": THREE_REMOTE,
    "multipart with gaps": MULTIPART,
}


@dataclass
class World:
    """A project with buckets ``first`` and ``second`` and three nodes that keep pieces."""

    database: Database
    clock: Clock
    project_id: bytes = b""
    nodes: Nodes = field(init=False)
    stored: dict[bytes, bytes] = field(default_factory=dict)
    freed: list[bytes] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.project_id = create_project(self.database, "world").project_id
        self.nodes = Nodes(self.database)
        for number, node_id in enumerate(NODES):
            self.nodes.register(node_id, f"memory:///node{number}")
        for name in ("first", "second"):
            self.bucket(name)

    # -- places and keys

    def at(self, key: str, bucket: str = "first") -> ObjectLocation:
        return ObjectLocation(self.project_id, bucket, key.encode())

    def bucket(self, name: str, placement: int = 0) -> None:
        create_bucket(self.database, CreateBucket(self.project_id, name, placement))

    @staticmethod
    def wrapped_metadata(data: bytes = b"metadata") -> WrappedMetadata:
        return WrappedMetadata(os.urandom(12), data, os.urandom(48))

    # -- uploads

    def begin(
        self,
        location: ObjectLocation,
        *,
        expires_at: int | None = None,
        metadata: WrappedMetadata = NO_METADATA,
    ) -> ObjectRecord:
        request = BeginObject(location, ENCRYPTION, expires_at, metadata)
        return begin_object(self.database, request)

    def segment(self, upload: ObjectRecord, position: Position, kind: str, body: bytes) -> None:
        """Store one segment; its plain bytes are ``body``, its encrypted ones 16 more."""
        common: dict[str, Any] = {
            "stream_id": upload.stream_id,
            "position": position,
            "encrypted_key_nonce": os.urandom(12),
            "encrypted_key": os.urandom(48),
            "plain_size": len(body),
            "encrypted_size": len(body) + 16,
            "encrypted_etag": b"etag of " + body[:8],
        }
        if kind == INLINE:
            request = CommitSegment(**common, inline_data=body + b"." * 16)
        else:
            root = os.urandom(32)
            with self._lock:
                self.stored[root] = body
            request = CommitSegment(
                **common,
                root_piece_id=root,
                redundancy=SCHEME,
                alias_pieces=self.nodes.pack(enumerate(NODES)),
            )
        self.free(commit_segment(self.database, request))

    def upload(
        self,
        key: str,
        layout: Layout = ONE_REMOTE,
        *,
        bucket: str = "first",
        expires_at: int | None = None,
        metadata: WrappedMetadata = NO_METADATA,
        conditions: Conditions = NO_CONDITIONS,
        size: int = 100,
    ) -> ObjectRecord:
        location = self.at(key, bucket)
        pending = self.begin(location, expires_at=expires_at, metadata=metadata)
        for place, kind in layout.parts:
            self.segment(pending, Position(*place), kind, os.urandom(size))
        done = commit_object(
            self.database, CommitObject(location, pending.stream_id, conditions=conditions)
        )
        self.free(done.freed)
        return done.object

    def slices(
        self, source: ObjectLocation, part: int, offset: int, length: int
    ) -> tuple[PartSlice, ...]:
        """A range of an object as slices of a part, with random keys."""
        page = list_segments(
            self.database,
            ListSegments(source, range_start=offset, range_limit=offset + length),
        )
        cut: list[PartSlice] = []
        for segment in page.segments:
            first = max(offset, segment.plain_offset)
            last = min(offset + length, segment.plain_offset + segment.plain_size)
            if first < last:
                cut.append(
                    PartSlice(
                        Position(part, len(cut)),
                        Position.decode(segment.position),
                        first - segment.plain_offset,
                        last - first,
                        os.urandom(12),
                        os.urandom(48),
                        b"",
                    )
                )
        return tuple(cut)

    def copy_part(
        self, upload: ObjectRecord, part: int, source: ObjectLocation, offset: int, length: int
    ) -> None:
        """Make a range of an object a part of an upload."""
        record = get_object(self.database, source)
        slices = self.slices(source, part, offset, length)
        copy_part(
            self.database,
            CopyPart(upload.location, upload.stream_id, source, record.stream_id, slices),
        )

    def commit(
        self, upload: ObjectRecord, joined: Sequence[int] = (), parts: int = 0
    ) -> ObjectRecord:
        """Commit an upload, with keys for a copy of a source with these positions; where it has
        parts, all of them."""
        keys = [SegmentKey(position, os.urandom(12), os.urandom(48)) for position in joined]
        request = CommitObject(
            upload.location,
            upload.stream_id,
            parts=frozenset(range(1, parts + 1)) if parts else None,
            joined_keys=PackedKeys.of(keys) if keys else None,
        )
        done = commit_object(self.database, request)
        self.free(done.freed)
        return done.object

    # -- copies, moves, deletes

    def operation(self, operation_id: bytes | None = None) -> Operation:
        return Operation(
            operation_id or os.urandom(16), self.project_id, self.clock() + 24 * HOUR_US
        )

    def rewrapped(self, source: ObjectLocation, target: ObjectLocation) -> list[SegmentKey]:
        page = begin_copy(self.database, BeginCopy(source, target))
        return [SegmentKey(key.position, os.urandom(12), os.urandom(48)) for key in page.keys]

    def finishing(
        self, source: ObjectLocation, target: ObjectLocation, **changes: Any
    ) -> FinishCopy:
        """A right Finish after a Begin; ``changes`` replace its fields."""
        page = begin_copy(self.database, BeginCopy(source, target))
        keys = [SegmentKey(key.position, os.urandom(12), os.urandom(48)) for key in page.keys]
        has_metadata = page.source.encrypted_metadata_encrypted_key is not None
        fields: dict[str, Any] = {
            "operation": self.operation(),
            "source": source,
            "source_stream_id": page.source.stream_id,
            "target": target,
            "keys": PackedKeys.of(keys),
            "metadata": WrappedMetadata(os.urandom(12), None, os.urandom(48))
            if has_metadata
            else NO_METADATA,
        }
        return FinishCopy(**{**fields, **changes})

    def finish(self, request: FinishCopy) -> ObjectRecord:
        done = finish_copy(self.database, request)
        self.free(done.freed)
        return done.object

    def copy(self, source: ObjectLocation, target: ObjectLocation, **changes: Any) -> ObjectRecord:
        return self.finish(self.finishing(source, target, **changes))

    def move(self, source: ObjectLocation, target: ObjectLocation, **changes: Any) -> ObjectRecord:
        page = begin_copy(self.database, BeginCopy(source, target))
        has_metadata = page.source.encrypted_metadata_encrypted_key is not None
        fields: dict[str, Any] = {
            "operation": self.operation(),
            "source": source,
            "source_stream_id": page.source.stream_id,
            "target": target,
            "keys": PackedKeys.of(self.rewrapped(source, target)),
            "metadata_key": os.urandom(48) if has_metadata else None,
            "metadata_key_nonce": os.urandom(12) if has_metadata else None,
        }
        done = finish_move(self.database, FinishMove(**{**fields, **changes}))
        self.free(done.freed)
        return done.object

    def delete(self, location: ObjectLocation) -> ObjectRecord | None:
        done = delete_object(self.database, DeleteObject(location))
        self.free(done.freed)
        return done.object

    def delete_bucket(self, name: str, batch: int = 100) -> None:
        request = DeleteBucket(self.project_id, name, everything=True, batch=batch)
        for step in delete_bucket(self.database, request):
            self.free((step if isinstance(step, BatchResult) else step.along).freed)

    def free(self, freed: Sequence[FreedSegment]) -> None:
        """Remove pieces from the nodes; a second time for the same piece is an error.

        Each must have been queued by the transaction that let it go.
        """
        queued = {row[0]: row[1] for row in self.table("freed_segments")} if freed else {}
        with self._lock:
            for piece in freed:
                assert queued[piece.root_piece_id] == piece.alias_pieces
                del self.stored[piece.root_piece_id]
                self.freed.append(piece.root_piece_id)
        settle_freed(self.database, freed, [])

    # -- looking

    def download(
        self, location: ObjectLocation, start: int | None = None, limit: int | None = None
    ) -> bytes:
        """The plain bytes (or a range of them), through pages of two segments."""
        body, cursor, more, begins = b"", None, True, None
        while more:
            request = ListSegments(
                location, cursor=cursor, limit=2, range_start=start, range_limit=limit
            )
            page = list_segments(self.database, request)
            for segment in page.segments:
                begins = segment.plain_offset if begins is None else begins
                body += self._bytes_of(segment)
                cursor = Position.decode(segment.position)
            more = page.more
        first = (start or 0) - (begins or 0)
        return body[first : first + (limit - (start or 0))] if limit is not None else body[first:]

    def _bytes_of(self, segment: Any) -> bytes:
        if segment.inline_data is not None:
            return bytes(segment.inline_data[: segment.plain_size])
        assert segment.remote_alias_pieces, "a remote segment came without pieces"
        assert [node.node_id for _, node in self.nodes.unpack(segment.remote_alias_pieces)]
        with self._lock:
            whole = self.stored[segment.root_piece_id]
        if segment.origin is None:
            return whole
        assert len(whole) == segment.origin.plain_size
        return whole[segment.origin.skip : segment.origin.skip + segment.plain_size]

    def rows(self) -> TableRows:
        """Every row of every table, but for the count of changes, which only ever rises."""
        with self.database.engine.connect() as connection:
            return {table.name: _rows_of(connection, table) for table in metadata.sorted_tables}

    def table(self, name: str) -> list[tuple[Any, ...]]:
        """Those of one table."""
        with self.database.engine.connect() as connection:
            return _rows_of(connection, metadata.tables[name])

    def ancestors(self) -> dict[bytes, bytes]:
        """The reference table."""
        return {row[0]: row[1] for row in self.table("segment_copies")}

    def usage(self) -> tuple[int, int, int]:
        rows = self.table("project_usage")
        return tuple(sum(row[column] for row in rows) for column in (2, 3, 4))  # type: ignore[return-value]

    def empty(self) -> bool:
        """Whether nothing of any object remains, on the nodes neither."""
        rows = self.rows()
        tables = ("objects", "segments", "segment_copies", "segment_slices", "freed_segments")
        gone = not any(rows[name] for name in tables)
        return gone and not self.stored and self.usage() == (0, 0, 0)

    @contextmanager
    def unchanged(self, *errors: type[BaseException], match: str | None = None) -> Iterator[None]:
        """The block must raise one of ``errors`` and leave every row as it was."""
        before = self.rows()
        with pytest.raises(errors, match=match):
            yield
        assert self.rows() == before


def _rows_of(connection: Connection, table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in connection.execute(_without_counts(table))), key=repr)


@cache
def _without_counts(table: Table) -> Select[Any]:
    return select(*(column for column in table.c if column.name != "changes"))


Action = Callable[[], Any]


def in_parallel(actions: Sequence[Action], threads: int = 8) -> list[BaseException | Any]:
    """Run actions on a few threads that start together; gives results or errors, in order."""
    results: list[Any] = [None] * len(actions)
    start = threading.Barrier(min(threads, len(actions)))
    queue = iter(enumerate(actions))
    lock = threading.Lock()

    def worker() -> None:
        start.wait()
        while True:
            with lock:
                number, action = next(queue, (None, None))
            if number is None or action is None:
                return
            try:
                results[number] = action()
            except BaseException as error:
                results[number] = error

    workers = [threading.Thread(target=worker) for _ in range(start.parties)]
    for each in workers:
        each.start()
    for each in workers:
        each.join(timeout=120)
    assert not any(each.is_alive() for each in workers), "a worker hangs"
    return results


MAX_COPIES = verify.MAX_LIVE_COPIES
