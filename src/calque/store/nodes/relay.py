"""Local nodes for clients that are elsewhere: pieces through the satellite's own port.

A node whose root is a folder can only be reached on its machine. ``calque serve`` therefore
relays: a client names a node and a piece, and the bytes stream over gRPC. Two things are asked
for: an API key that the satellite accepts, and the piece's id, which cannot be guessed and which
the satellite tells only to those who may read or write the segment. A piece that exists is never
overwritten, and nothing can be deleted from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

import grpc

from calque.errors import CalqueError, InvalidInput, NotFound
from calque.store.metainfo.status import abort_with
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import PIECE_ID_SIZE

SERVICE = "calque.pieces.Pieces"
KEY, NODE, PIECE = "calque-key-bin", "calque-node-bin", "calque-piece-bin"
EXPIRES, OFFSET, LENGTH = "calque-expires", "calque-offset", "calque-length"

_DIGITS = 19
"""Of any size that a file can have."""

STREAMS = 64
"""Pieces on their way at once; whoever comes then waits for one that ends."""

Right = Literal["read", "write"]


class PieceRelay:
    """The handlers of the relay, to be added to a gRPC server."""

    def __init__(self, nodes: Iterable[Node], authorize: Callable[[bytes, Right], None]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._authorize = authorize

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
            node, piece, told = self._admitted(context, "write")
            node.write(piece, chunks, _moment(told.get(EXPIRES)), replace=False)
        except CalqueError as error:
            abort_with(context, error)
        return b""

    def _get(self, _: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            node, piece, told = self._admitted(context, "read")
            yield from node.read(piece, _number(told, OFFSET), _number(told, LENGTH))
        except CalqueError as error:
            abort_with(context, error)

    def _admitted(
        self, context: grpc.ServicerContext, right: Right
    ) -> tuple[Node, bytes, dict[str, Any]]:
        told: dict[str, Any] = dict(context.invocation_metadata())
        self._authorize(told.get(KEY, b""), right)
        node, piece = self._nodes.get(told.get(NODE, b"")), told.get(PIECE, b"")
        if node is None:
            raise NotFound("this satellite does not relay to such a node")
        if len(piece) != PIECE_ID_SIZE:
            raise InvalidInput(f"a piece id has {PIECE_ID_SIZE} bytes, not {len(piece)}")
        return node, piece, told


def _number(told: dict[str, Any], name: str) -> int:
    value = str(told.get(name, ""))
    if not value.isascii() or not value.isdigit() or len(value) > _DIGITS:
        raise InvalidInput(f"{name} must be a number of at most {_DIGITS} digits")
    return int(value)


def _moment(seconds: str | None) -> datetime | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(f"{EXPIRES} must be seconds since 1970") from error
