"""What every request passes: no session, no page; and headers that keep foreign scripts out."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calque.console.sessions import Session, Sessions

BASE = "/console"
SIGN_IN = f"{BASE}/sign-in"
STATIC = f"{BASE}/static/"

LARGEST_SIGN_IN = 64 * 1024
"""Bytes of a form that anybody may send."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """An ASGI application before another."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        session = self._sessions.find(HTTPConnection(scope).cookies.get(cookie_name(scope)))
        scope.setdefault("state", {})["session"] = session
        if session is None and not _is_open(scope["path"]):
            await _refuse(Request(scope))(scope, receive, send_guarded)
            return
        taken = receive if session is not None else _sip(receive)
        await self._app(scope, taken, send_guarded)


def _sip(receive: Receive) -> Receive:
    """A body of one who is not signed in is no longer than a token needs: it is kept in memory."""
    taken = 0

    async def receive_little() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > LARGEST_SIGN_IN:
            raise HTTPException(413, "it is too large")
        return message

    return receive_little


def _is_open(path: str) -> bool:
    """What is there for everybody: it tells nothing of what is behind."""
    return path in (SIGN_IN, "/favicon.ico") or path.startswith(STATIC)


def _refuse(request: Request) -> Response:
    if wants_json(request) or request.method not in ("GET", "HEAD"):
        told = {"kind": "PermissionDenied", "message": "not signed in", "hint": f"See {SIGN_IN}."}
        return JSONResponse({"error": told}, 401)
    return RedirectResponse(SIGN_IN, 303)


def wants_json(request: HTTPConnection) -> bool:
    """Whether a program asks: every page is JSON to it."""
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted


def session_of(request: HTTPConnection) -> Session:
    """The session that the guard has found."""
    session: Session | None = request.state.session
    assert session is not None, "the guard lets nobody in without one"
    return session


def cookie_name(scope: Scope) -> str:
    """Browsers share cookies between the ports of a host: consoles of two stores must not."""
    server = scope.get("server")
    return f"calque_console_{server[1] if server else 0}"
