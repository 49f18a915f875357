"""The console behind HTTP: uvicorn in a thread of its own."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from calque.console.guard import BASE, SIGN_IN
from calque.console.hosts import HostNames
from calque.console.site import Site
from calque.errors import ConfigInvalid, Unavailable

PORT = 7780
_GRACE = 5


@dataclass(frozen=True, slots=True)
class ServedConsole:
    """Where the console is, and how the next browser signs in."""

    origin: str
    site: Site

    @property
    def url(self) -> str:
        return f"{self.origin}{BASE}"

    def sign_in_url(self, token: str | None = None) -> str:
        """The address with the token in it, which works once."""
        return f"{self.origin}{SIGN_IN}?token={token or self.site.sessions.token}"


@contextmanager
def serve_console(
    site: Site,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    names: Collection[str] = (),
) -> Iterator[ServedConsole]:
    """Serve a site for the length of a ``with`` block; with a certificate by TLS alone.

    ``names`` are those by which a proxy may ask for it, beside its address.
    """
    if certificate is not None:
        _require_pair(certificate, key)
    listening = _listen(host, port)
    server = uvicorn.Server(
        uvicorn.Config(
            HostNames(site.app, host, names),
            lifespan="off",
            access_log=False,  # the address of the sign-in page holds a token
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
    )
    thread = threading.Thread(
        target=server.run, args=([listening],), name="calque-console", daemon=True
    )
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise Unavailable("the server of the console did not start")
            thread.join(0.01)
        scheme = "http" if certificate is None else "https"
        shown = f"[{host}]" if ":" in host else host
        yield ServedConsole(f"{scheme}://{shown}:{listening.getsockname()[1]}", site)
    finally:
        site.live.close()
        server.should_exit = True
        thread.join()
        site.close()
        listening.close()


def is_free(host: str, port: int) -> bool:
    """Whether one could listen there now."""
    try:
        _listen(host, port).close()
    except ConfigInvalid:
        return False
    return True


def _require_pair(certificate: str | os.PathLike[str], key: str | os.PathLike[str] | None) -> None:
    """Before anything listens; a key behind a passphrase is refused and not asked for."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
    except OSError as error:
        raise ConfigInvalid(
            f"{certificate} and {key} are no certificate and its key: {error.strerror or error}",
            hint="Both are PEM files; the key has no passphrase.",
        ) from error


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        raise ConfigInvalid(
            f"cannot listen at {host}:{port} for the console: {error.strerror}",
            hint="Choose another port with --console-port (calque console: --port).",
        ) from error
    listening.listen(128)
    return listening
