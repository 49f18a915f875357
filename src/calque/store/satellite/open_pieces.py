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

MAX_STRAGGLERS = 65_536
"""Pieces of slow nodes that are remembered; the oldest are forgotten."""

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
        self._stragglers: dict[bytes, int] = {}
        """By their id: bytes that they may still have without being counted."""

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
        the client's, and a slow node must not use up its room: as far as they have no more bytes
        than the ``most`` that a piece of this segment has.
        """
        now = self._clock()
        named = set(pieces)
        with self._lock:
            project = self._projects.setdefault(project_id, _Project())
            for piece in offered:
                if piece not in named:
                    spent = project.drop(project.pieces, piece)
                    free = most + PIECE_COST - spent
                    if free < 0:
                        project.add(project.pieces, piece, -free, now)
                    self._stragglers[piece] = max(free, 0)
            while len(self._stragglers) > MAX_STRAGGLERS:
                del self._stragglers[next(iter(self._stragglers))]
            size = sum(project.drop(project.pieces, piece) for piece in named)
            if size:
                project.add(project.uploads, stream_id, size, now)
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
            free = self._stragglers.get(token.piece_id, 0)
            if size <= free:
                self._stragglers[token.piece_id] = free - size
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
