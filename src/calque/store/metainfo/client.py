"""A satellite at the other end of gRPC."""

from __future__ import annotations

import time
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from calque.errors import InvalidInput, RateLimited, TimedOut, Unavailable, Unexpected
from calque.store.metainfo.keepalive import keepalive_options
from calque.store.metainfo.service import CALLS, Metainfo
from calque.store.metainfo.status import error_of
from calque.values import Backoff

DEFAULT_TIMEOUT_S = 60.0
REPEATS = 3
"""Of a call that may be repeated, after its first try."""
_BACKOFF = Backoff(first=0.05, factor=4.0)


def open_channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    """A connection to ``host:port``, encrypted when there are credentials."""
    options = [
        # The satellite bounds its answers; a limit here could only refuse a good one.
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        *keepalive_options(),
    ]
    if credentials is None:
        return grpc.insecure_channel(address, options=options)
    return grpc.secure_channel(address, credentials, options=options)


class MetainfoClient(Metainfo):
    """Calls a satellite at ``host:port``; safe to share between threads.

    With ``credentials`` the connection is encrypted, and the server must prove who it is.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        self._channel = open_channel(address, credentials)
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
        """Send ``request`` and wait for its answer, at most the client's timeout.

        A call that may be repeated is sent again when the connection breaks: a lost answer to
        a commit gives the object that was committed, not an error.
        """
        known = CALLS.get(name)
        if known is None:
            raise InvalidInput(f"there is no call {name!r}")
        for wait in _BACKOFF.waits(REPEATS if known.repeatable else 0):
            try:
                return self._once(name, request)
            except (RateLimited, TimedOut):
                # Both are Unavailable too; asking again would make an overload worse.
                raise
            except Unavailable:
                time.sleep(wait)
        return self._once(name, request)

    def _once(self, name: str, request: Message) -> Message:
        stub = self._stubs[name]
        try:
            data = stub(request, timeout=self._timeout_s * CALLS[name].patience)
            return CALLS[name].response.FromString(data)
        except grpc.RpcError as failure:
            raise error_of(failure) from failure
        except DecodeError as error:
            raise Unexpected(f"the answer to {name} cannot be read") from error

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()
