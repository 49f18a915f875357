"""Pieces that were put through the relay and belong to no committed object yet, counted by project.

A quota is charged when an object is committed. Without this count a client could put segment after
segment and commit none, and fill the disks until the pieces are swept as orphans. So the open
pieces of a project may take as much as its quota again, and a little: then any object can be
replaced by one as large, also when the quota is used up. Each process counts what passed its relay.

Nor may a segment say that it is smaller than what was put for it: its quota would be charged for a
byte, and the disks hold the rest for as long as the object lives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from calque.errors import InvalidInput, ResourceExhausted
from calque.store.metainfo.pb.tokens_pb2 import PieceToken
from calque.values import MIB

ROOM = 16 * MIB
"""Bytes that may be open besides, so that small quotas hold up nobody who uploads in parallel."""

PIECE_COST = 4096
"""Bytes that a piece counts for besides its own: the smallest still takes a block of the disk."""

MAX_COMMITTED = 65_536
"""Pieces of committed segments that are remembered; the oldest are forgotten."""

KEPT_US = 48 * 3600 * 1_000_000
"""After this long a piece is committed, or garbage that gc takes away."""


@dataclass(slots=True)
class _Count:
    size: int
    at: int
    whole: int = 0
    """Bytes of a piece that was put to its end."""


@dataclass(slots=True)
class _Project:
    pieces: dict[bytes, _Count] = field(default_factory=dict)
    """By their id: put, and named by no segment yet."""
    uploads: dict[bytes, _Count] = field(default_factory=dict)
    """By their stream: in segments of an object that is not committed."""
    total: int = 0

    def add(self, counts: dict[bytes, _Count], key: bytes, size: int, now: int) -> None:
        count = counts.setdefault(key, _Count(0, now))
        count.size += size
        count.at = now
        self.total += size

    def drop(self, counts: dict[bytes, _Count], key: bytes) -> int:
        count = counts.pop(key, None)
        size = 0 if count is None else count.size
        self.total -= size
        return size

    def drop_old(self, before: int) -> None:
        for counts in (self.pieces, self.uploads):
            for key in [key for key, count in counts.items() if count.at < before]:
                self.drop(counts, key)


class OpenPieces:
    """The open pieces of every project. Safe to share between threads."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._projects: dict[bytes, _Project] = {}
        self._committed: dict[bytes, int] = {}
        """Pieces of segments that are committed, by their id: bytes that may still be put."""

    @contextmanager
    def put_piece(self, token: PieceToken) -> Iterator[Callable[[int], None]]:
        """Count a piece while it is put: call what this gives with the size of every chunk.

        ResourceExhausted when the project has too much open. What a put has counted that fails is
        given back.
        """
        counted = 0

        def count(size: int) -> None:
            nonlocal counted
            self._add(token, size)
            counted += size

        try:
            count(PIECE_COST)
            yield count
        except BaseException:
            self._subtract(token, counted)
            raise
        self._note_whole(token, counted - PIECE_COST)

    def require_size(self, project_id: bytes, pieces: Iterable[bytes], most: int) -> None:
        """InvalidInput when one of these pieces has more bytes than a piece of its segment may."""
        with self._lock:
            project = self._projects.get(project_id)
            found = [] if project is None else [project.pieces.get(piece) for piece in pieces]
            largest = max((each.whole for each in found if each is not None), default=0)
        if largest > most:
            raise InvalidInput(
                f"a piece has {largest} bytes, and of a segment of this size at most {most}",
                hint="Commit the segment with the size that its pieces were made from.",
            )

    def commit_segment(
        self,
        project_id: bytes,
        stream_id: bytes,
        pieces: Iterable[bytes],
        offered: Iterable[bytes],
        most: int,
    ) -> None:
        """A segment names these pieces of those it was offered: they go with its upload.

        The others are of nodes that were too slow, and may well be put later. That is no fault of
        the client's, and a slow node must not use up its room. From now on no piece of the segment
        grows beyond the ``most`` bytes that it gives each.
        """
        now, limit = self._clock(), most + PIECE_COST
        named = set(pieces)
        with self._lock:
            project = self._projects.setdefault(project_id, _Project())
            for piece in {*offered, *named}:
                spent = project.drop(project.pieces, piece)
                if spent > limit:  # that much lies on a node, or is on its way there
                    project.add(project.pieces, piece, spent - limit, now)
                if spent and piece in named:
                    project.add(project.uploads, stream_id, min(spent, limit), now)
                self._committed[piece] = max(limit - spent, 0)
            while len(self._committed) > MAX_COMMITTED:
                del self._committed[next(iter(self._committed))]
            if not project.total:
                del self._projects[project_id]

    def close_upload(self, project_id: bytes, stream_id: bytes) -> None:
        """Committed, so the quota counts it, or aborted, so its pieces are deleted."""
        with self._lock:
            project = self._projects.get(project_id)
            if project is not None:
                project.drop(project.uploads, stream_id)
                if not project.total:
                    del self._projects[project_id]

    def _add(self, token: PieceToken, size: int) -> None:
        if not token.most_open:
            return
        now = self._clock()
        with self._lock:
            left = self._committed.get(token.piece_id)
            if left is not None:
                if size > left:
                    raise ResourceExhausted("the segment was committed with fewer bytes than this")
                self._committed[token.piece_id] = left - size
                return
            project = self._projects.setdefault(token.project_id, _Project())
            if project.total + size > token.most_open:
                project.drop_old(now - KEPT_US)
            if project.total + size > token.most_open:
                raise ResourceExhausted(
                    f"the uploads of this project that are not committed take {project.total} "
                    f"bytes on the nodes, the limit is {token.most_open}",
                    hint="Commit or abort uploads that are open; what killed ones left is not "
                    "counted after two days.",
                )
            project.add(project.pieces, token.piece_id, size, now)

    def _note_whole(self, token: PieceToken, size: int) -> None:
        with self._lock:
            project = self._projects.get(token.project_id)
            count = None if project is None else project.pieces.get(token.piece_id)
            if count is not None:
                count.whole = size

    def _subtract(self, token: PieceToken, size: int) -> None:
        """Not the whole count of the piece: a token can be used twice, and one put may succeed."""
        with self._lock:
            project = self._projects.get(token.project_id)
            if project is None:
                return
            left = project.drop(project.pieces, token.piece_id) - size
            if left > 0:
                project.add(project.pieces, token.piece_id, left, self._clock())
