"""From a page to an answer: the same data as HTML or as JSON; and changes, which need a token."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from calque.console.guard import session_of, wants_json
from calque.console.text import plain
from calque.errors import (
    AlreadyExists,
    CalqueError,
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    PermissionDenied,
    Unavailable,
    Unsupported,
)

STATUS: tuple[tuple[type[CalqueError], int], ...] = (
    (NotFound, 404),
    (InvalidInput, 400),
    (PermissionDenied, 403),
    (AlreadyExists, 409),
    (ConditionNotMatch, 409),
    (Unsupported, 501),
    (Unavailable, 503),
)
"""The first that fits; what is not here is a failure of ours."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows: ``data`` is all of it, ``template`` how people see it."""

    template: str
    title: str
    data: Mapping[str, Any] = field(repr=False)
    command: str | None = None
    """The command that does the same."""
    status: int = 200


View = Callable[[Request], "Page | Response"]
Change = Callable[[Request, FormData], "Page | Response | str"]
"""A change gives a page, or the address where its result is seen."""


class Pages:
    """Makes endpoints of views."""

    def __init__(self, templates: Environment) -> None:
        self._templates = templates

    def show(self, view: View) -> Callable[[Request], Response]:
        """An endpoint that shows a page; Starlette runs it in a thread."""

        def endpoint(request: Request) -> Response:
            try:
                answer = view(request)
            except CalqueError as error:
                answer = error_page(error)
            return self.answer(request, answer)

        return endpoint

    def change(self, view: Change) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that changes something, for forms with the session's token."""

        async def endpoint(request: Request) -> Response:
            try:
                answer = await self._change(request, view)
            except CalqueError as error:
                answer = error_page(error)
            except ClientDisconnect:
                return Response(status_code=400)
            return self.answer(request, answer)

        return endpoint

    async def _change(self, request: Request, view: Change) -> Page | Response:
        csrf = session_of(request).csrf
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise PermissionDenied("another site may not ask for changes")
        async with request.form(max_files=1000) as form:
            brought = form.get("csrf")
            if not isinstance(brought, str) or not _is_same(brought, csrf):
                raise PermissionDenied(
                    "this form is not of your session",
                    hint="Go back, load the page again, and send it once more.",
                )
            answer = await run_in_threadpool(view, request, form)
        if isinstance(answer, str):
            return RedirectResponse(answer, 303)
        return answer

    def answer(self, request: Request, page: Page | Response) -> Response:
        """A page in the form that was asked for."""
        if isinstance(page, Response):
            return page
        if wants_json(request):
            return _Json({**page.data, "command": page.command}, page.status)
        session = request.state.session
        html = self._templates.get_template(page.template).render(
            **page.data, page=page, here=request.url.path, csrf=session.csrf if session else ""
        )
        # A name of a file may be no UTF-8: it is shown escaped, as JSON has it, never a failure.
        return HTMLResponse(html.encode("utf-8", "backslashreplace"), page.status)


class _Json(JSONResponse):
    def render(self, content: Any) -> bytes:
        return json.dumps(content, default=plain, ensure_ascii=False, indent=2).encode(
            "utf-8", "backslashreplace"
        )


def asked_for(request: Request, name: str) -> str:
    """A value of the address that names something in a database, none of which takes NUL."""
    value = request.query_params.get(name, "")
    if "\0" in value:
        raise NotFound(f"there is no {value!r}")
    return value


def error_page(error: CalqueError) -> Page:
    """What went wrong, and what to do about it."""
    status = next((code for kind, code in STATUS if isinstance(error, kind)), 500)
    told = describe_error(error)
    return Page("error.html", "That did not work", {"error": told}, status=status)


def describe_error(error: CalqueError) -> dict[str, Any]:
    """An error in the words that the command line has for programs."""
    return {
        "kind": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
    }


def _is_same(brought: str, token: str) -> bool:
    return secrets.compare_digest(brought.encode("utf-8", "replace"), token.encode())
