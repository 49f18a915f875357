"""Pages for people, which a proxy or a portal sends with 200 in the place of a server."""

from __future__ import annotations

import re

from calque.errors import Unexpected

_PAGE = re.compile(rb"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!doctype\s+html|<html)", re.IGNORECASE)


def refuse_page(body: bytes, location: str) -> None:
    """Raise Unexpected for such a page: it is no answer, and nothing was written or deleted."""
    if _PAGE.match(body):
        raise Unexpected(
            f"{location}: a page for people came instead of the service's answer",
            hint="A proxy or a portal stands before the server: open it in a browser.",
        )
