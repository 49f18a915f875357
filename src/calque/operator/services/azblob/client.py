"""Requests of the REST API: signed, sent through the layers, and refused or returned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from calque.errors import InvalidInput
from calque.operator import paths
from calque.operator.http.exchange import Answer, Body, Wire
from calque.operator.http.html_replies import refuse_page
from calque.operator.layers.chain import Call, Chain
from calque.operator.services.azblob.config import AzblobConfig
from calque.operator.services.azblob.credentials import Credentials
from calque.operator.services.azblob.errors import error_of

API_VERSION = "2026-06-06"


class Link:
    """Connections and credentials of one container, shared by clients and their layers."""

    def __init__(self, config: AzblobConfig) -> None:
        self.config = config
        self._wire = Wire(config.endpoint, ca_bundle=config.ca_bundle)
        self.credentials = Credentials(config)
        parts = urlsplit(config.endpoint)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._base = f"{parts.path}/{quote(config.container, safe='')}"

    def exchange(
        self,
        call: Call,
        method: str,
        blob: str | None,
        query: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send one request about a blob (None: the container); the answer may be a refusal."""
        target, signed = self._sign(method, blob, query or {}, headers or {}, body)
        return self._wire.exchange(method, target, signed, body, call=call)

    def open(self, call: Call, blob: str, headers: Mapping[str, str]) -> tuple[Answer, Body]:
        """Ask for bytes; they are read as the iterator is."""
        target, signed = self._sign("GET", blob, {}, headers, None)
        return self._wire.open(target, signed, call=call)

    def sign_source(self, blob: str) -> tuple[str, dict[str, str]]:
        """The URL by which the service itself may read a blob, and headers that go with it.

        It is signed for a short time. Never show it and never keep it.
        """
        query, headers = self.credentials.sign_source(blob)
        return self.url(blob, query), headers

    def url(self, blob: str, query: str) -> str:
        """The whole address of a blob, with a query that may sign it."""
        address = f"{self._origin}{self.path(blob)}"
        return f"{address}?{query}" if query else address

    def path(self, blob: str | None) -> str:
        """The encoded path of a blob (None: of the container)."""
        if blob is None:
            return self._base
        return f"{self._base}/{quote(blob, safe='/~')}"

    def _sign(
        self,
        method: str,
        blob: str | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> tuple[str, dict[str, str]]:
        signed = {"x-ms-version": API_VERSION, **headers}
        # The type is signed: it must be said here, before anything on the way adds one.
        if body and "Content-Type" not in signed:
            signed["Content-Type"] = "application/octet-stream"
        path = self.path(blob)
        self.credentials.sign(method, path, query, signed, len(body or b""))
        pairs = [f"{name}={quote(value, safe='')}" for name, value in query.items()]
        # A shared access signature is a query of its own, encoded already; it is not encoded again.
        own = self.credentials.query()
        tail = "&".join([*pairs, own] if own else pairs)
        return f"{path}{'?' + tail if tail else ''}", signed

    def close(self) -> None:
        self._wire.close()


@dataclass(frozen=True, slots=True)
class Client:
    """What every verb needs: where blobs are, and a way to ask through the layers."""

    link: Link
    chain: Chain

    def key(self, path: str) -> str:
        """The blob's name, without what Azure would make another name of: a backslash becomes a
        slash, a segment ``.`` is dropped."""
        if "\\" in path:
            raise InvalidInput(f"Azure cannot keep a backslash in a blob's name: {path!r}")
        if "." in path.split("/"):
            raise InvalidInput(f"Azure cannot keep a segment '.' in a blob's name: {path!r}")
        return paths.join(self.link.config.root, paths.unicode_path(path))

    def location(self, path: str) -> str:
        """By account, not by endpoint: two ways to one blob have one location."""
        config = self.link.config
        return f"az://{config.account}.blob/{config.container}/{self.key(path)}"

    def ask(
        self,
        call: Call,
        path: str,
        method: str,
        query: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        listed: bool = False,
    ) -> Answer:
        """One request about a blob (``listed``: about its container), as the layers let it pass.

        Returns the successful answer; raises the error that any other stands for.
        """
        blob = None if listed else self.key(path)
        answer = self.link.exchange(call, method, blob, query, headers=headers, body=body)
        if not 200 <= answer.status < 300:
            raise error_of(answer, self.location(path), call.verb)
        refuse_page(answer.body, self.location(path))
        return answer

    def send(
        self,
        verb: str,
        path: str,
        method: str,
        query: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        listed: bool = False,
    ) -> Answer:
        """:meth:`ask`, through the layers."""

        def request(call: Call) -> Answer:
            return self.ask(call, path, method, query, headers=headers, body=body, listed=listed)

        return self.chain.send(verb, path, request)

    def close(self) -> None:
        self.link.close()
