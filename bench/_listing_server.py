"""A server that lists keys which nobody had to write: ``_listing_server COUNT DELAY``.

Each prefix of :data:`KINDS`, in any bucket, holds so many keys of that kind; every answer takes the
delay. ``GET /-/count`` tells how many listings were asked for since the last time.
"""

from __future__ import annotations

import bisect
import http.server
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from urllib.parse import parse_qs, quote, urlsplit

_PAGE = 1000
KINDS: dict[str, Callable[[int], str]] = {
    "hex": lambda n: f"{(n * 2654435761) % 2**32:08x}/{n:07}",
    "digits": lambda n: f"{n:08}",
    "dates": lambda n: f"dt=2026-{n // 28000 + 1:02}-{n // 1000 % 28 + 1:02}/part-{n % 1000:05}",
    "long-prefix": lambda n: f"a{n:05}" if n % 100 == 0 else f"{'very-' * 12}long/{n:08}",
}
"""Spread evenly; close together; folder by folder; nearly all below one long name."""


@cache
def keys_of(kind: str, count: int) -> list[str]:
    return sorted(KINDS[kind](number) for number in range(count))


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers ListObjectsV2, and nothing else."""

    protocol_version = "HTTP/1.1"
    count, delay, asked, lock = 0, 0.0, 0, threading.Lock()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/-/count":
            with Handler.lock:
                told, Handler.asked = Handler.asked, 0
            self._send(str(told).encode(), "text/plain")
            return
        with Handler.lock:
            Handler.asked += 1
        time.sleep(Handler.delay)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._send(self._page(asked), "application/xml")

    def _page(self, asked: dict[str, str]) -> bytes:
        prefix = asked.get("prefix", "")
        kind, _, below = prefix.partition("/")[2].partition("/")
        keys = keys_of(kind, Handler.count) if kind in KINDS and not below else []
        after = asked.get("continuation-token") or asked.get("start-after", "")
        start = bisect.bisect_right(keys, after.removeprefix(prefix)) if after else 0
        page = keys[start : start + _PAGE]
        more = start + len(page) < len(keys)
        body = "".join(
            f"<Contents><Key>{quote(prefix + key)}</Key><Size>1</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            "<ETag>&quot;c4ca4238a0b923820dcc509a6f75849b&quot;</ETag></Contents>"
            for key in page
        )
        last = prefix + page[-1] if page else ""
        token = f"<NextContinuationToken>{last}</NextContinuationToken>"
        return (
            "<ListBucketResult><EncodingType>url</EncodingType>"
            f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"{token if more else ''}{body}</ListBucketResult>"
        ).encode()

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def main() -> None:
    Handler.count, Handler.delay = int(sys.argv[1]), float(sys.argv[2])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
