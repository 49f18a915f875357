"""A satellite behind gRPC: the endpoint's calls, one for one."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from calque.errors import CalqueError, ConfigInvalid, InvalidInput
from calque.store.callers import act_for_caller
from calque.store.metabase.engine.callers import require_caller
from calque.store.metainfo.keepalive import keepalive_options
from calque.store.metainfo.service import CALLS, SERVICE, Call, Metainfo
from calque.store.metainfo.status import abort_with

DEFAULT_THREADS = 16
MESSAGE_OVERHEAD = 64 * 1024
_LAST_MOMENT = 0.2
"""Seconds before a deadline in which nothing is begun or committed any more."""


class MetainfoServer:
    """A running gRPC server; ``address`` is where clients reach it."""

    def __init__(self, server: Any, address: str) -> None:
        self._server = server
        self.address = address

    def stop(self, grace_s: float = 5.0) -> None:
        """Take no more calls, let the running ones end, then close."""
        self._server.stop(grace_s).wait()

    def wait(self) -> None:
        """Block until the server is stopped."""
        self._server.wait_for_termination()


def serve_metainfo(
    satellite: Metainfo,
    address: str = "127.0.0.1:0",
    *,
    max_message_size: int = 8 * 1024 * 1024,
    threads: int = DEFAULT_THREADS,
    credentials: grpc.ServerCredentials | None = None,
    more: Sequence[grpc.GenericRpcHandler[Any, Any]] = (),
) -> MetainfoServer:
    """Serve ``satellite`` at ``address``; port 0 takes a free one.

    Without ``credentials`` the connection is not encrypted: keep it on the loopback, since
    API keys travel in the messages. ``more`` handlers are served on the same port.
    """
    _check_free(address)
    server = grpc.server(
        ThreadPoolExecutor(threads, thread_name_prefix="metainfo"),
        options=[
            ("grpc.max_receive_message_length", max_message_size + MESSAGE_OVERHEAD),
            ("grpc.max_send_message_length", -1),
            # Else a second server could take the same port, and half of the calls with it.
            ("grpc.so_reuseport", 0),
            *keepalive_options(),
        ],
    )
    handlers = {name: _handler(satellite, call) for name, call in CALLS.items()}
    own = grpc.method_handlers_generic_handler(SERVICE, handlers)
    server.add_generic_rpc_handlers((own, *more))
    try:
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise ConfigInvalid(f"cannot listen at {address}") from error
    server.start()
    return MetainfoServer(server, f"{address.rsplit(':', 1)[0]}:{port}")


def _check_free(address: str) -> None:
    """gRPC writes a line of its own to standard error where it cannot listen, and gives none."""
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host.strip("[]"), int(port)), family=family).close()
    except socket.gaierror as error:
        raise ConfigInvalid(f"cannot listen at {address}: {error.strerror}") from error
    except OSError as error:
        raise ConfigInvalid(
            f"cannot listen at {address}: {os.strerror(error.errno or 0)}",
            hint="Another port: --port, where 0 is any free one.",
        ) from error


def _handler(satellite: Metainfo, call: Call) -> grpc.RpcMethodHandler[bytes, bytes]:
    """No deserializer is given: gRPC would answer bytes that are no message with Internal."""
    return grpc.unary_unary_rpc_method_handler(_answer(satellite, call))


def _answer(satellite: Metainfo, call: Call) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    def answer(data: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            # A call may have waited for a thread until its caller gave up: what that one takes
            # for failed must not be done after all.
            with act_for_caller(lambda: _is_waiting(context)):
                require_caller()
                return satellite.call(call.name, _parse(call, data)).SerializeToString()
        except CalqueError as error:
            abort_with(context, error)

    return answer


def _is_waiting(context: grpc.ServicerContext) -> bool:
    """Whether the caller is there, and stays for long enough to hear the answer.

    A deadline travels as the seconds that are left, so ours ends after the caller's own, by as long
    as the call was on its way. Between the two the caller has given up and the context has not.
    """
    left = context.time_remaining()
    return context.is_active() and (left is None or left > _LAST_MOMENT)


def _parse(call: Call, data: bytes) -> Message:
    try:
        return call.request.FromString(data)
    except DecodeError as error:
        raise InvalidInput(f"this is no {call.request.DESCRIPTOR.name}") from error
