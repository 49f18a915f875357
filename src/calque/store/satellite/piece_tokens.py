"""Leave to put or get pieces: signed here, brought back by the client, checked by the relay.

A token names one piece on one node, how many bytes it may have, the API key that it was given to
and until when it holds. It is given out where the caller's right was checked: to put at
BeginSegment, to get at ListSegments. So nobody reaches a piece of another project, or puts more
than a segment may have.
"""

from __future__ import annotations

from calque.errors import PermissionDenied
from calque.store.metabase.model.records import Encryption, Redundancy
from calque.store.metainfo.pb import tokens_pb2 as tokens
from calque.store.nodes.pieces import is_piece_id, piece_id
from calque.store.satellite.caller import Caller
from calque.store.satellite.open_pieces import ROOM
from calque.store.satellite.satellite import Satellite

LIFETIME_US = 24 * 3600 * 1_000_000
"""Shorter than the time that pieces which nobody names are left alone."""

UNIT_OVERHEAD = 256
"""Bytes that a share may grow by in a piece: its hash, the header and the padding of the code."""

TAG_SIZE = 16


def sign_put_token(
    satellite: Satellite, caller: Caller, root_piece_id: bytes, number: int, node_id: bytes,
    size: int, expires_at: int, most_open: int,
) -> bytes:  # fmt: skip
    """Leave to put one piece, of at most ``size`` bytes."""
    token = _token(satellite, caller, root_piece_id, number, node_id, size)
    token.action = tokens.PieceToken.PUT
    token.expires_at = expires_at
    token.project_id = caller.project_id
    token.most_open = most_open
    return satellite.signer.sign(token)


def sign_get_token(
    satellite: Satellite, caller: Caller, root_piece_id: bytes, number: int, node_id: bytes,
    size: int,
) -> bytes:  # fmt: skip
    """Leave to get one piece."""
    token = _token(satellite, caller, root_piece_id, number, node_id, size)
    token.action = tokens.PieceToken.GET
    return satellite.signer.sign(token)


def open_token(
    satellite: Satellite, caller: Caller, signed: bytes, action: tokens.PieceToken.Action
) -> tokens.PieceToken:
    """The token in ``signed``; PermissionDenied unless it is this caller's, for this, and holds."""
    token = satellite.signer.open(tokens.PieceToken, signed, "piece token")
    if token.caller != caller.identity:
        raise PermissionDenied("the piece token was given to another API key")
    if token.action != action:
        raise PermissionDenied("the piece token is for something else")
    if token.valid_until <= satellite.database.clock():
        raise PermissionDenied(
            "the piece token is too old", hint="Begin the segment, or list the segments, again."
        )
    if not is_piece_id(token.piece_id):
        # Given out before an upgrade: nobody would find a piece of that name again.
        raise PermissionDenied(
            "the piece token is of another release", hint="Begin the segment again."
        )
    return token


def max_encrypted_size(satellite: Satellite, upload: tokens.UploadToken, limit: int | None) -> int:
    """Bytes that a segment of this upload may have: by the cipher, and by the project's limit."""
    cipher_block = Encryption.decode(upload.encryption).block_size
    blocks = -(-satellite.settings.max_segment_size // max(cipher_block - TAG_SIZE, 1))
    most = satellite.settings.max_segment_size + TAG_SIZE * blocks
    return most if limit is None else min(most, limit)


def max_open_size(limit: int | None, max_encrypted: int, scheme: Redundancy, nodes: int) -> int:
    """Bytes on nodes that the uncommitted pieces of a project may have; 0 when it has no limit.

    Its quota once more, and one segment, on as many nodes as may be asked to hold it.
    """
    if limit is None:
        return 0
    pieces = max_piece_size(limit, scheme) + max_piece_size(max_encrypted, scheme)
    return pieces * max(scheme.total, nodes) + ROOM


def max_piece_size(encrypted_size: int, scheme: Redundancy) -> int:
    """Bytes that a piece of such a segment has at most."""
    stripes = -(-encrypted_size // (scheme.share_size * scheme.required))
    return stripes * (scheme.share_size + UNIT_OVERHEAD)


def _token(
    satellite: Satellite, caller: Caller, root_piece_id: bytes, number: int, node_id: bytes,
    size: int,
) -> tokens.PieceToken:  # fmt: skip
    return tokens.PieceToken(
        caller=caller.identity,
        node_id=node_id,
        piece_id=piece_id(root_piece_id, node_id, number),
        size=size,
        valid_until=satellite.database.clock() + LIFETIME_US,
    )
