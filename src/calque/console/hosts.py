"""By which names a console may be asked for.

A page of another site can give its own name the address of this machine (DNS rebinding) and then
asks the console as if it were its own server. The browser says which name it asked for, so a
console that listens on this machine alone answers only to names that nobody else can give.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class HostNames:
    """An ASGI application before another: a foreign name is told nothing at all."""

    def __init__(self, app: ASGIApp, host: str, names: Collection[str] = ()) -> None:
        """``host`` is the address that is listened on, ``names`` those of a proxy before it."""
        self._app = app
        self._names = {_tidy(each) for each in (host, "localhost", *names)}
        self._takes_all = not names and not is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_ours(HTTPConnection(scope)):
            text = "This console is not known by that name: see --name and --console-name.\n"
            await PlainTextResponse(text, 421)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_ours(self, request: HTTPConnection) -> bool:
        if self._takes_all:
            return True
        asked = request.headers.getlist("host")
        return len(asked) == 1 and self._is_known(_name_of(asked[0]))

    def _is_known(self, name: str) -> bool:
        # An IP address is safe: rebinding a page to this server takes a host name.
        return name in self._names or name.endswith(".localhost") or _is_address(name)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return _tidy(host) == "localhost"


def _name_of(host: str) -> str:
    """The name in a Host header, without its port: ``[::1]:7780``, ``localhost:7780``."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return _tidy(host.partition(":")[0])


def _tidy(name: str) -> str:
    return name.strip().rstrip(".").lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
