"""Names of pieces, and where they lie under a node's root.

::

    calque-node                         the id of the node (see ``identity``)
    pieces/<2 hex>/<62 hex>             the units of one piece, stripe after stripe
    expiries/<hour>/<64 hex>            empty: this piece may go once that hour has passed

The marker makes expiry known to the node itself: it collects by listing the hours that are over,
without asking the satellite and without opening a piece. A marker whose piece is gone is harmless.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime

PIECE_ID_SIZE = 32
PIECES = "pieces/"
EXPIRIES = "expiries/"
_HOUR = "%Y%m%d%H"


def piece_id(root_piece_id: bytes, node_id: bytes, number: int) -> bytes:
    """The id of one piece: nobody can guess it who does not know the segment's root piece id."""
    message = node_id + number.to_bytes(4, "big")
    return hmac.digest(root_piece_id, message, hashlib.sha512)[:PIECE_ID_SIZE]


def piece_path(piece: bytes) -> str:
    name = piece.hex()
    return f"{PIECES}{name[:2]}/{name[2:]}"


def piece_of_path(path: str) -> bytes | None:
    """The piece that lies at a path; None for a file that is no piece."""
    name = path.removeprefix(PIECES).replace("/", "", 1)
    try:
        piece = bytes.fromhex(name)
    except ValueError:
        return None
    return piece if len(piece) == PIECE_ID_SIZE and piece_path(piece) == path else None


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
    """The piece that an expiry marker speaks of."""
    try:
        piece = bytes.fromhex(path.rpartition("/")[2])
    except ValueError:
        return None
    return piece if len(piece) == PIECE_ID_SIZE else None
