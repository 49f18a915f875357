"""A stranger who was given a signed request."""

from __future__ import annotations

import http.client
from contextlib import ExitStack
from urllib.parse import urlsplit

from calque.operator import PresignedRequest

ODD = "a b/ü+%&=?#~.txt"
"""A name with what URLs, queries and signatures treat in their own ways."""


def send(asked: PresignedRequest, body: bytes | None = None) -> tuple[int, bytes]:
    """Send a request as a stranger does: by its method, URL and headers."""
    parts = urlsplit(asked.url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    with ExitStack() as held:
        held.callback(connection.close)
        target = f"{parts.path}?{parts.query}"
        connection.request(asked.method, target, body, dict(asked.headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
