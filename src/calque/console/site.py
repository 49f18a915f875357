"""Sections of pages put together: routes, navigation, the overview, and live figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from calque._version import __version__
from calque.console.guard import BASE, SIGN_IN, Guard, cookie_name, session_of
from calque.console.live import Live
from calque.console.page import Change, Page, Pages, View, describe_error, error_page
from calque.console.sessions import LIFE, Sessions
from calque.console.text import make_templates
from calque.errors import CalqueError, InvalidInput, NotFound, Unexpected


@dataclass(frozen=True)
class Section:
    """Pages that belong together. ``overview`` is what they add to the first page, under
    ``name``; ``figures`` what they tell live."""

    name: str
    links: Sequence[tuple[str, str]]
    """Titles and addresses below ``/console``, for the navigation."""
    views: Mapping[str, View]
    changes: Mapping[str, Change] = field(default_factory=dict)
    overview: Callable[[], Mapping[str, Any]] = dict
    figures: Callable[[], Mapping[str, object]] = dict
    close: Callable[[], None] = lambda: None


class Site:
    """The console as an ASGI application."""

    def __init__(
        self,
        sections: Sequence[Section],
        *,
        announce: Callable[[str], None] | None = None,
        command: str = "calque console",
    ) -> None:
        """``announce`` is told each new token, once the one before was used."""
        self.sessions = Sessions(announce)
        self.live = Live([each.figures for each in sections])
        self._sections = sections
        self._command = command
        templates = make_templates()
        templates.globals |= {
            "base": BASE,
            "version": __version__,
            "links": [("Overview", ""), *(link for each in sections for link in each.links)],
        }
        self._pages = Pages(templates)
        self.app: ASGIApp = Guard(self._make_app(), self.sessions)

    def close(self) -> None:
        """End what sections have begun."""
        for each in self._sections:
            each.close()

    def _make_app(self) -> Starlette:
        pages = self._pages
        routes: list[Route | Mount] = [
            Route("/", _go_to_overview),
            Route(f"{BASE}/", _go_to_overview),
            Route("/favicon.ico", _go_to_icon),
            Mount(f"{BASE}/static", StaticFiles(packages=[("calque.console", "static")])),
            Route(SIGN_IN, pages.show(self._show_sign_in), methods=["GET"]),
            Route(SIGN_IN, self._sign_in, methods=["POST"]),
            Route(f"{BASE}/sign-out", pages.change(self._sign_out), methods=["POST"]),
            Route(f"{BASE}/live", self._stream),
            Route(BASE, pages.show(self._overview), methods=["GET"]),
        ]
        for section in self._sections:
            for path, view in section.views.items():
                routes.append(Route(f"{BASE}/{path}", pages.show(view), methods=["GET"]))
            for path, change in section.changes.items():
                routes.append(Route(f"{BASE}/{path}", pages.change(change), methods=["POST"]))
        handlers: dict[Any, Any] = {HTTPException: self._refuse, Exception: self._fail}
        return Starlette(routes=routes, exception_handlers=handlers)

    def _overview(self, request: Request) -> Page:
        data = {each.name: _overview_of(each) for each in self._sections}
        return Page("overview.html", "Overview", {"sections": data}, self._command)

    def _show_sign_in(self, request: Request) -> Page:
        token = request.query_params.get("token", "")
        data = {"token": token, "problem": None}
        return Page("sign_in.html", "Sign in", data)

    async def _sign_in(self, request: Request) -> Response:
        async with request.form(max_files=0) as form:
            brought = form.get("token")
        cookie = self.sessions.sign_in(brought.strip() if isinstance(brought, str) else "")
        if cookie is None:
            problem = "This token is wrong, or was used already. The terminal shows the next one."
            data = {"token": "", "problem": problem}
            page = Page("sign_in.html", "Sign in", data, status=403)
            return self._pages.answer(request, page)
        response = RedirectResponse(BASE, 303)
        response.set_cookie(
            cookie_name(request.scope),
            cookie,
            max_age=int(LIFE),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    def _sign_out(self, request: Request, form: FormData) -> Response:
        self.sessions.sign_out(session_of(request))
        response = RedirectResponse(SIGN_IN, 303)
        response.delete_cookie(cookie_name(request.scope), httponly=True, samesite="strict")
        return response

    async def _stream(self, request: Request) -> Response:
        session = session_of(request)
        events = self.live.events(lambda: self.sessions.is_open(session))
        return StreamingResponse(events, media_type="text/event-stream")

    def _fail(self, request: Request, error: Exception) -> Response:
        """A mistake of ours; uvicorn logs it. What it says may quote what users wrote."""
        page = error_page(Unexpected("the console made a mistake", hint="Its log says more."))
        return self._pages.answer(request, page)

    def _refuse(self, request: Request, error: Exception) -> Response:
        """What never came to a view: no such page, another method, a form that is none."""
        assert isinstance(error, HTTPException)
        said = InvalidInput(f"the request cannot be answered: {error.detail}")
        missing = NotFound("there is no such page", hint=f"Begin at {BASE}.")
        page = error_page(missing if error.status_code == 404 else said)
        return self._pages.answer(request, replace(page, status=error.status_code))


def _overview_of(section: Section) -> Mapping[str, Any]:
    """What a section tells, or why it cannot: a database that is away hides no other section."""
    try:
        return section.overview()
    except CalqueError as error:
        return {"problem": describe_error(error)}


async def _go_to_overview(request: Request) -> Response:
    return RedirectResponse(BASE, 303)


async def _go_to_icon(request: Request) -> Response:
    return RedirectResponse(f"{BASE}/static/icon.svg", 303)
