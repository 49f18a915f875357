"""Names of pieces, and where they lie under a node's root.

::

    calque-node                         the id of the node (see ``identity``)
    pieces/<version>/<2 hex>/<60 hex>   the units of one piece, stripe after stripe
    expiries/<hour>/<64 hex>            empty: this piece may go once that hour has passed
    trash/<day>/<64 hex>                a piece that garbage collection took away (see ``trash``)

The first byte of a piece id says how the rest was derived. A name of another version is no piece
of ours: it is neither handed out nor collected. Deriving ids is most of a garbage collection,
so the derivation is a cheap one: BLAKE2b, keyed by the segment's root piece id.

The marker makes expiry known to the node itself: it collects by listing the hours that are over,
without asking the satellite and without opening a piece. A marker whose piece is gone is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b

from calque.errors import IntegrityError

PIECE_ID_SIZE = 32
PIECE_NAMES = 2
"""How piece ids are derived now; the version in the name of each."""
PIECES = "pieces/"
EXPIRIES = "expiries/"
_HOUR = "%Y%m%d%H"


_MARK = bytes((PIECE_NAMES,))
_DIGEST = PIECE_ID_SIZE - len(_MARK)


def piece_id(root_piece_id: bytes, node_id: bytes, number: int) -> bytes:
    """The id of one piece: nobody can guess it who does not know the segment's root piece id."""
    (digest,) = piece_digests(root_piece_id, ((number, node_id),))
    return _MARK + digest


def piece_digests(root_piece_id: bytes, pieces: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    """What follows the version in the ids of a segment's pieces, given by number and node id."""
    # The key is taken in once a segment and not once a piece: that is most of the work.
    try:
        keyed = blake2b(key=root_piece_id, digest_size=_DIGEST)
    except ValueError as error:
        raise IntegrityError(
            f"a root piece id of {len(root_piece_id)} bytes is none",
            hint="`calque store fsck` names the segment.",
        ) from error
    for number, node_id in pieces:
        state = keyed.copy()
        state.update(node_id + number.to_bytes(4, "big"))
        yield state.digest()


def is_piece_id(piece: bytes) -> bool:
    """Whether these bytes are an id that this release derives."""
    return len(piece) == PIECE_ID_SIZE and piece.startswith(_MARK)


def piece_path(piece: bytes) -> str:
    name = piece.hex()
    return f"{PIECES}{name[:2]}/{name[2:4]}/{name[4:]}"


def piece_of_path(path: str) -> bytes | None:
    """The piece that lies at a path; None for a file that is no piece."""
    piece = _from_hex(path.removeprefix(PIECES).replace("/", "", 2))
    return piece if piece is not None and piece_path(piece) == path else None


def expiry_path(piece: bytes, expires: datetime) -> str:
    return f"{EXPIRIES}{expires.astimezone(UTC).strftime(_HOUR)}/{piece.hex()}"


def hour_of_path(path: str) -> datetime | None:
    """The hour in which an expiry marker's piece expires; None for anything else."""
    try:
        hour = path.removeprefix(EXPIRIES).partition("/")[0]
        return datetime.strptime(hour, _HOUR).replace(tzinfo=UTC)
    except ValueError:
        return None


def piece_of_marker(path: str) -> bytes | None:
    """The piece that an expiry marker, or a name in the trash, speaks of."""
    return _from_hex(path.rpartition("/")[2])


def _from_hex(name: str) -> bytes | None:
    try:
        piece = bytes.fromhex(name)
    except ValueError:
        return None
    return piece if is_piece_id(piece) else None
