"""The fake on a loopback port."""

from __future__ import annotations

import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from tests.servers.gcs_fake import signed
from tests.servers.gcs_fake.model import Bucket, World
from tests.servers.gcs_fake.replies import ApiError, Reply, Request
from tests.servers.gcs_fake.routes import Routes


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    fake: GcsFake


class GcsFake:
    """A running fake: ``with GcsFake() as fake: Client(api_endpoint=fake.endpoint)``.

    ``require_token`` makes every storage call ask for ``Authorization: Bearer`` with a token that
    :meth:`issue_token` or the OAuth endpoint ``/token`` gave out. ``accounts`` are the public keys
    of service accounts, by email, that signed URLs are held against.
    """

    def __init__(self, *, require_token: bool = False) -> None:
        self.require_token = require_token
        self.tokens: set[str] = set()
        self.accounts: dict[str, RSAPublicKey] = {}
        self._listener = _Listener(("127.0.0.1", 0), _Handler)
        self._listener.fake = self
        self.endpoint = f"http://127.0.0.1:{self._listener.server_address[1]}"
        self.world = World(base=self.endpoint)
        self.routes = Routes(self.world)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    def start(self) -> GcsFake:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join(5)

    def __enter__(self) -> GcsFake:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def make_bucket(
        self,
        name: str,
        *,
        location: str = "US",
        storage_class: str = "STANDARD",
        versioning: bool = False,
    ) -> Bucket:
        """A bucket, made without a request."""
        with self.world.lock:
            made = Bucket(name, location, storage_class, versioning)
            self.world.buckets[name] = made
        return made

    def issue_token(self) -> str:
        """A bearer token that the fake will accept."""
        token = secrets.token_urlsafe(24)
        self.tokens.add(token)
        return token

    def answer(self, request: Request) -> Reply:
        if request.path == "/token" and request.method == "POST":
            token = self.issue_token()
            return Reply.of_json(
                200, {"access_token": token, "expires_in": 3600, "token_type": "Bearer"}
            )
        if "X-Goog-Signature" in request.query:
            return signed.answer(self.world, request, self.accounts)
        if self.require_token and (refusal := self._refusal(request)) is not None:
            return refusal.reply(media=request.query.get("alt") == "media")
        return self.routes.answer(request)

    def _refusal(self, request: Request) -> ApiError | None:
        header = request.headers.get("authorization")
        if header is None:
            return ApiError(
                401,
                "required",
                "Anonymous caller does not have storage.objects.get access to the object.",
            )
        if header.removeprefix("Bearer ") not in self.tokens:
            return ApiError(401, "authError", "Invalid Credentials")
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def log_message(self, format: str, *args: object) -> None:
        """Tests read the journal; nothing is printed."""

    def _serve(self) -> None:
        url = urlsplit(self.path)
        headers = {key.lower(): value for key, value in self.headers.items()}
        body, complete = self._body(headers)
        request = Request(
            self.command,
            url.path,
            dict(parse_qsl(url.query, keep_blank_values=True)),
            headers,
            body,
            complete,
        )
        reply = self.server.fake.answer(request)
        if complete:
            self._send(reply)
        else:
            self.close_connection = True

    def _body(self, headers: dict[str, str]) -> tuple[bytes, bool]:
        if headers.get("transfer-encoding") == "chunked":
            return self._chunked(), True
        length = int(headers.get("content-length") or 0)
        data = bytearray()
        while len(data) < length:
            try:
                piece = self.rfile.read1(min(length - len(data), 1 << 20))
            except OSError:
                piece = b""
            if not piece:
                return bytes(data), False
            data += piece
        return bytes(data), True

    def _chunked(self) -> bytes:
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _send(self, reply: Reply) -> None:
        head = [f"HTTP/1.1 {reply.status} {self.responses.get(reply.status, ('Status',))[0]}"]
        # A 304 and a 204 have no body; a length there would make clients wait for one.
        length = {} if reply.status in (204, 304) else {"Content-Length": str(len(reply.body))}
        for key, value in (reply.headers | length).items():
            head.append(f"{key}: {value}")
        raw = ("\r\n".join(head) + "\r\n\r\n").encode("latin-1", "replace")
        try:
            self.wfile.write(raw + reply.body)
        except OSError:
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815
