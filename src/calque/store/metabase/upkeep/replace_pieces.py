"""Where the pieces of a segment are, replaced by compare-and-swap.

Whoever builds new pieces has read the list first. If somebody else changed it since, the new list
is not written: it would name pieces that are gone, or forget some that are there. An original that
was deleted meanwhile has left its list to its oldest copy: there it is replaced all the same. A
segment that was kept without its object, for its slices, has the list where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, select, update

from calque.errors import IntegrityError
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import HAS_OBJECT, lock_families
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.packed_pieces import unpack
from calque.store.metabase.model.records import ROOT_PIECE_ID_SIZE, moment, readable_redundancy
from calque.store.metabase.model.schema import segment_copies, segments
from calque.store.metabase.streams.slices import HOLDERS

_FIELDS = (
    segments.c.stream_id,
    segments.c.position,
    segments.c.root_piece_id,
    segments.c.encrypted_size,
    segments.c.redundancy,
    segments.c.expires_at,
    segments.c.placement,
    segments.c.remote_alias_pieces,
)
SEGMENT_WITH_PIECES = Statement(
    "a segment that owns pieces",
    select(*_FIELDS).where(
        segments.c.stream_id == bindparam("of_stream"),
        segments.c.position == bindparam("at_position"),
        segments.c.remote_alias_pieces.is_not(None),
    ),
)
COPIES_OF = Statement(
    "copies of a stream",
    select(segment_copies.c.stream_id).where(
        segment_copies.c.ancestor_stream_id == bindparam("ancestor")
    ),
)
REPLACE_PIECES = Statement(
    "replace the pieces of a segment",
    update(segments)
    .where(
        segments.c.stream_id == bindparam("of_stream"),
        segments.c.position == bindparam("at_position"),
        segments.c.root_piece_id == bindparam("of_root"),
        segments.c.remote_alias_pieces == bindparam("old_pieces"),
    )
    .values(remote_alias_pieces=bindparam("new_pieces"), repaired_at=bindparam("now")),
)


class OwnedPieces(NamedTuple):
    """A segment that owns pieces, as it was read."""

    stream_id: bytes
    position: int
    root_piece_id: bytes
    encrypted_size: int
    redundancy: int
    expires_at: int | None
    placement: int
    alias_pieces: bytes

    def check(self) -> OwnedPieces:
        """This row; IntegrityError where it is damaged, which no node is to be blamed for."""
        scheme, placed = readable_redundancy(self.redundancy), unpack(self.alias_pieces)
        if scheme is None or placed[-1][0] >= scheme.total:
            raise self._damaged("redundancy")
        if self.encrypted_size < 1:
            raise self._damaged("size")
        if len(self.root_piece_id) != ROOT_PIECE_ID_SIZE:
            raise self._damaged("root piece id")
        try:
            moment(self.expires_at or 0)
        except OverflowError as error:
            raise self._damaged("expiry") from error
        return self

    def _damaged(self, what: str) -> IntegrityError:
        return IntegrityError(
            f"segment {self.stream_id.hex()}/{self.position} has a damaged {what}",
            hint="See `calque store fsck`.",
        )


class Family(NamedTuple):
    """A segment and the streams that may inherit its pieces."""

    segment: OwnedPieces
    copies: tuple[bytes, ...]


def read_owned(database: Database, stream_id: bytes, position: int) -> Family | None:
    """The segment with its pieces now; None when it is gone or owns none any more."""

    def work(transaction: Transaction) -> Family | None:
        where = {"of_stream": stream_id, "at_position": position}
        row = transaction.row(SEGMENT_WITH_PIECES, where)
        if row is None:
            return None
        copies = transaction.rows(COPIES_OF, {"ancestor": stream_id})
        return Family(OwnedPieces(*row), tuple(bytes(each[0]) for each in copies))

    return database.read(work)


def replace_pieces(database: Database, family: Family, new_pieces: bytes) -> bool:
    """Swap the list where it is still the one that was read; False when somebody changed it."""
    return any(
        _replace_in(database, stream_id, family.segment, new_pieces)
        for stream_id in (family.segment.stream_id, *family.copies)
    )


def find_heir(database: Database, family: Family) -> OwnedPieces | None:
    """Who owns the pieces now, the list changed or not."""
    for stream_id in (family.segment.stream_id, *family.copies):
        found = read_owned(database, stream_id, family.segment.position)
        if found is not None and found.segment.root_piece_id == family.segment.root_piece_id:
            return found.segment
    return None


def _replace_in(database: Database, stream_id: bytes, was: OwnedPieces, new_pieces: bytes) -> bool:
    def work(transaction: Transaction) -> bool:
        if transaction.row(HAS_OBJECT, {"stream_id": stream_id}):
            # A deletion reads the list and then removes the row: neither may happen between both.
            lock_families(transaction, [(stream_id, None)])
        # Without an object it is gone, or kept for its slices: those meet at the row itself.
        swapped = transaction.run(
            REPLACE_PIECES,
            {
                "of_stream": stream_id,
                "at_position": was.position,
                "of_root": was.root_piece_id,
                "old_pieces": was.alias_pieces,
                "new_pieces": new_pieces,
                "now": transaction.now,
            },
        )
        return swapped > 0

    return database.write(work)


def count_readers(database: Database, streams: Sequence[bytes]) -> int:
    """How many objects read the pieces of these streams: themselves, copies, those with slices."""

    def work(transaction: Transaction) -> int:
        own = transaction.batch([(HAS_OBJECT, {"stream_id": each}) for each in streams])
        holders = transaction.batch([(HOLDERS, {"ancestor": each}) for each in streams])
        return sum(map(len, own)) + sum(int(rows[0][0]) for rows in holders)

    return database.read(work) if streams else 0
