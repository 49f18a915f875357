"""A satellite at the other end of gRPC."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from calque.errors import InvalidInput, Unexpected
from calque.store.metainfo.service import CALLS, Metainfo
from calque.store.metainfo.status import error_of

DEFAULT_TIMEOUT_S = 60.0


class MetainfoClient(Metainfo):
    """Calls a satellite at ``host:port``; safe to share between threads."""

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
        ]
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options=options)
        else:
            self._channel = grpc.secure_channel(address, credentials, options=options)
        self._timeout_s = timeout_s
        self._stubs: dict[str, Any] = {
            name: self._channel.unary_unary(
                call.path,
                request_serializer=call.request.SerializeToString,
                response_deserializer=bytes,
            )
            for name, call in CALLS.items()
        }

    def call(self, name: str, request: Message) -> Message:
        """Send ``request`` and wait for its answer, at most the client's timeout."""
        stub = self._stubs.get(name)
        if stub is None:
            raise InvalidInput(f"there is no call {name!r}")
        try:
            data = stub(request, timeout=self._timeout_s)
            return CALLS[name].response.FromString(data)
        except grpc.RpcError as failure:
            raise error_of(failure) from failure
        except DecodeError as error:
            raise Unexpected(f"the answer to {name} cannot be read") from error

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()
