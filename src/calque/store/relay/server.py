"""Local nodes for clients that are elsewhere: pieces through the satellite's own port.

A node whose root is a folder can only be reached on its machine. ``calque serve`` therefore
relays: the bytes of a piece stream over gRPC. Two things are asked for: an API key that the
satellite accepts, and a token that the satellite signed for this key and this piece, to put or to
get it, when the segment was begun or listed. A token says how many bytes the piece may have, when
it expires and until when the token holds. A piece that exists is never overwritten, and nothing
can be deleted from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any

import grpc

from calque.errors import CalqueError, InvalidInput, NotFound, ResourceExhausted
from calque.store.metainfo.pb.tokens_pb2 import PieceToken
from calque.store.metainfo.status import abort_with
from calque.store.metainfo.timestamps import moment_of
from calque.store.nodes.node import Node
from calque.store.relay.node_streams import read_piece, write_piece

SERVICE = "calque.pieces.Pieces"
KEY, TOKEN = "calque-key-bin", "calque-token-bin"
OFFSET, LENGTH = "calque-offset", "calque-length"

_DIGITS = 19
"""Of any size that a file can have."""

STREAMS = 64
"""Pieces on their way at once; whoever comes then waits for one that ends, or is given up."""

Admit = Callable[[bytes, bytes, PieceToken.Action], PieceToken]
"""The token for an API key, the signed bytes and an action; an error when it does not hold."""

PutPiece = Callable[[PieceToken], AbstractContextManager[Callable[[int], None]]]
"""Counts a piece while it is put, chunk by chunk; an error when there is no room for it."""


class PieceRelay:
    """The handlers of the relay, to be added to a gRPC server."""

    def __init__(self, nodes: Iterable[Node], admit: Admit, put_piece: PutPiece) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._admit = admit
        self._put_piece = put_piece

    def handler(self) -> grpc.GenericRpcHandler[bytes, bytes]:
        """What a gRPC server needs to serve the relay.

        A piece takes as long as its client likes. So pieces have threads of their own: in those
        of the server a few slow uploads would keep everybody else from being answered.
        """
        put, get = partial(self._put), partial(self._get)
        threads = ThreadPoolExecutor(STREAMS, thread_name_prefix="pieces")
        put.experimental_thread_pool = threads  # type: ignore[attr-defined]
        get.experimental_thread_pool = threads  # type: ignore[attr-defined]
        handlers = {
            "Put": grpc.stream_unary_rpc_method_handler(put),
            "Get": grpc.unary_stream_rpc_method_handler(get),
        }
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    def _put(self, chunks: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        try:
            _, token = self._admit_call(context, PieceToken.PUT)
            within = _limit_size(chunks, token.size)
            with self._put_piece(token) as count:
                write_piece(
                    self._node(token), token.piece_id, _count_chunks(within, count), _expiry(token)
                )
        except CalqueError as error:
            abort_with(context, error)
        return b""

    def _get(self, _: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            metadata, token = self._admit_call(context, PieceToken.GET)
            offset, length = _number(metadata, OFFSET), _number(metadata, LENGTH)
            if offset + length > token.size:
                raise InvalidInput(f"bytes up to {offset + length} of a piece of {token.size}")
            yield from read_piece(self._node(token), token.piece_id, offset, length)
        except CalqueError as error:
            abort_with(context, error)

    def _admit_call(
        self, context: grpc.ServicerContext, action: PieceToken.Action
    ) -> tuple[dict[str, Any], PieceToken]:
        metadata: dict[str, Any] = dict(context.invocation_metadata())
        return metadata, self._admit(metadata.get(KEY, b""), metadata.get(TOKEN, b""), action)

    def _node(self, token: PieceToken) -> Node:
        node = self._nodes.get(token.node_id)
        if node is None:
            raise NotFound("this satellite does not relay to such a node")
        return node


def _limit_size(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    for chunk in chunks:
        size -= len(chunk)
        if size < 0:
            raise ResourceExhausted("the piece has more bytes than its token allows")
        yield chunk


def _count_chunks(chunks: Iterable[bytes], count: Callable[[int], None]) -> Iterator[bytes]:
    for chunk in chunks:
        count(len(chunk))
        yield chunk


def _expiry(token: PieceToken) -> datetime | None:
    return moment_of(token.expires_at) if token.expires_at else None


def _number(metadata: dict[str, Any], name: str) -> int:
    value = str(metadata.get(name, ""))
    if not value.isascii() or not value.isdigit() or len(value) > _DIGITS:
        raise InvalidInput(f"{name} must be a number of at most {_DIGITS} digits")
    return int(value)
