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
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any, NoReturn

import grpc

from calque.errors import CalqueError, InvalidInput, NotFound, RateLimited, ResourceExhausted
from calque.store.metainfo.pb.tokens_pb2 import PieceToken
from calque.store.metainfo.status import abort_with
from calque.store.metainfo.timestamps import moment_of
from calque.store.nodes.node import Node
from calque.store.nodes.streams import read_piece, write_piece
from calque.store.relay.stream_threads import StreamThreads

SERVICE = "calque.pieces.Pieces"
KEY, TOKEN = "calque-key-bin", "calque-token-bin"
OFFSET, LENGTH = "calque-offset", "calque-length"

_DIGITS = 19
"""Of any size that a file can have."""

STREAMS, STREAMS_PER_NODE = 64, 6
"""Pieces on their way at once; whoever comes then waits for one that ends, or is given up.

With many nodes there are more: a client sends a few segments at once, each to all of them."""

Admit = Callable[[bytes, bytes, PieceToken.Action], PieceToken]
"""The token for an API key, the signed bytes and an action; an error when it does not hold."""

PutPiece = Callable[[PieceToken], AbstractContextManager[Callable[[int], None]]]
"""Counts a piece while it is put, chunk by chunk; an error when there is no room for it."""


class PieceRelay:
    """The handlers of the relay, to be added to a gRPC server."""

    def __init__(
        self, own_nodes: Callable[[], Iterable[Node]], admit: Admit, put_piece: PutPiece
    ) -> None:
        self._own_nodes = own_nodes
        self._nodes = {node.id: node for node in own_nodes()}
        self._admit = admit
        self._put_piece = put_piece

    def handler(self) -> grpc.GenericRpcHandler[bytes, bytes]:
        """What a gRPC server needs to serve the relay.

        A piece takes as long as its client likes. So pieces have threads of their own: in those
        of the server a few slow uploads would keep everybody else from being answered.
        """
        threads = StreamThreads(max(STREAMS, STREAMS_PER_NODE * len(self._nodes)))
        return _Handlers(threads, self._put, self._get)

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
        if token.node_id not in self._nodes:
            # The satellite has signed for it, so it was added since.
            self._nodes = {node.id: node for node in self._own_nodes()}
        node = self._nodes.get(token.node_id)
        if node is None:
            raise NotFound("this satellite does not relay to such a node")
        return node


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in its stub alone
    """Finds the handler of a call, with threads that depend on whose call it is."""

    def __init__(
        self,
        threads: StreamThreads,
        put: Callable[[Iterator[bytes], grpc.ServicerContext], bytes],
        get: Callable[[bytes, grpc.ServicerContext], Iterator[bytes]],
    ) -> None:
        self._threads = threads
        self._put, self._get = put, get

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        if call.method == f"/{SERVICE}/Put":
            return grpc.stream_unary_rpc_method_handler(self._in_lane(self._put, call))
        if call.method == f"/{SERVICE}/Get":
            return grpc.unary_stream_rpc_method_handler(self._in_lane(self._get, call))
        return None

    def _in_lane(self, answer: Callable[..., Any], call: grpc.HandlerCallDetails) -> Any:
        metadata: dict[str, Any] = dict(call.invocation_metadata)
        try:
            lane = self._threads.lane(metadata.get(KEY, b""))
        except RateLimited as error:
            return partial(_refuse, error)  # at once, by a thread of the server
        behaviour = partial(answer)
        behaviour.experimental_thread_pool = lane  # type: ignore[attr-defined]
        return behaviour


def _refuse(error: RateLimited, _: object, context: grpc.ServicerContext) -> NoReturn:
    abort_with(context, error)


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
