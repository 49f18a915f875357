"""A client's view of nodes that lie on the satellite's machine: through its relay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

import grpc

from calque.operator.uri import scheme_of
from calque.store.metainfo.client import open_channel
from calque.store.metainfo.status import error_of
from calque.store.nodes.liveness import Liveness
from calque.store.nodes.node import NodeDirectory, PieceHolder
from calque.store.relay.server import KEY, LENGTH, OFFSET, SERVICE, TOKEN

_LONGEST = 24 * 3600.0
"""Seconds that a piece may take: its token is worth nothing then."""

_LOCAL = ("fs", "file", "memory")


@dataclass(frozen=True, slots=True)
class RelayedNode:
    """One node behind a relay."""

    id: bytes
    channel: grpc.Channel
    api_key: bytes = field(repr=False)
    liveness: Liveness = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "liveness", Liveness(self.name))

    @property
    def name(self) -> str:
        return self.id.hex()[:12]

    def write(
        self,
        piece: bytes,
        chunks: Iterable[bytes],
        expires: datetime | None,
        *,
        token: bytes = b"",
    ) -> None:
        """Keep a piece; ConditionNotMatch when the node has it.

        The token names the piece, and its expiry as the satellite knows it.
        """
        self.liveness.require()
        put = self.channel.stream_unary(f"/{SERVICE}/Put", None, None)
        source = _Source(chunks)
        try:
            put(iter(source), metadata=self._metadata_of(token), timeout=_LONGEST)
        except grpc.RpcError as error:
            if source.error is not None:
                raise source.error from None
            raise error_of(error) from error

    def read(
        self, piece: bytes, offset: int, length: int, *, token: bytes = b""
    ) -> Iterator[bytes]:
        """``length`` bytes of a piece; NotFound when the node does not have it."""
        self.liveness.require()
        get = self.channel.unary_stream(f"/{SERVICE}/Get", None, None)
        metadata = (*self._metadata_of(token), (OFFSET, str(offset)), (LENGTH, str(length)))
        call = get(b"", metadata=metadata, timeout=_LONGEST)
        try:
            yield from call
        except grpc.RpcError as error:
            raise error_of(error) from error
        finally:
            call.cancel()  # type: ignore[no-untyped-call]

    def discard(self, piece: bytes) -> None:
        """Nothing can be deleted through a relay: what is left is an orphan that upkeep removes."""

    def _metadata_of(self, token: bytes) -> tuple[tuple[str, str | bytes], ...]:
        return (KEY, self.api_key), (TOKEN, token)


class RelayedNodes(NodeDirectory):
    """Nodes of a satellite elsewhere: its local ones through the relay, others directly."""

    def __init__(
        self, target: str, api_key: bytes, credentials: grpc.ChannelCredentials | None = None
    ) -> None:
        super().__init__()
        self._channel = open_channel(target, credentials)
        self._api_key = api_key

    def open(self, node_id: bytes, address: str, placement: int) -> PieceHolder:
        if scheme_of(address) in _LOCAL:
            return RelayedNode(node_id, self._channel, self._api_key)
        return super().open(node_id, address, placement)

    def close(self) -> None:
        super().close()
        self._channel.close()


class _Source:
    """Chunks on their way into gRPC, which swallows the errors of what it iterates over."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._chunks
        except BaseException as error:
            self.error = error
            raise
