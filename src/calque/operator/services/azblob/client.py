"""One request of the REST API: signed, sent, and refused or returned."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from calque.operator.http.exchange import Answer, Body, Wire
from calque.operator.layers.chain import Call
from calque.operator.services.azblob.config import AzblobConfig
from calque.operator.services.azblob.credentials import Credentials
from calque.operator.services.azblob.errors import refusal

API_VERSION = "2026-06-06"


class AzblobClient:
    """Connections and credentials of one container, shared by services and their layers."""

    def __init__(self, config: AzblobConfig) -> None:
        self._config = config
        self._wire = Wire(config.endpoint, ca_bundle=config.ca_bundle)
        self._credentials = Credentials(config)
        parts = urlsplit(config.endpoint)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._base = f"{parts.path}/{quote(config.container, safe='')}"

    @property
    def config(self) -> AzblobConfig:
        return self._config

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
        target, signed = self._signed(method, blob, query or {}, headers or {}, body)
        return self._wire.exchange(method, target, signed, body, call=call)

    def open(self, call: Call, blob: str, headers: Mapping[str, str]) -> tuple[Answer, Body]:
        """Ask for bytes; they are read as the iterator is."""
        target, signed = self._signed("GET", blob, {}, headers, None)
        return self._wire.open(target, signed, call=call)

    def ask(
        self,
        call: Call,
        location: str,
        method: str,
        blob: str | None,
        query: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send one request and return its success; raise its refusal."""
        answer = self.exchange(call, method, blob, query, headers=headers, body=body)
        if not 200 <= answer.status < 300:
            raise refusal(answer, location, call.verb)
        return answer

    def source(self, blob: str) -> tuple[str, dict[str, str]]:
        """The URL by which the service itself may read a blob, and headers that go with it.

        It is signed for a short time. Never show it and never keep it.
        """
        query, headers = self._credentials.source(blob)
        url = f"{self._origin}{self._path(blob)}"
        return (f"{url}?{query}" if query else url), headers

    def presign(self, method: str, blob: str, seconds: int) -> str:
        """The URL by which anybody may send one kind of request for a blob; a secret."""
        query = self._credentials.presign(method, blob, seconds)
        url = f"{self._origin}{self._path(blob)}"
        return f"{url}?{query}" if query else url

    def _path(self, blob: str | None) -> str:
        if blob is None:
            return self._base
        return f"{self._base}/{quote(blob, safe='/~')}"

    def _signed(
        self,
        method: str,
        blob: str | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> tuple[str, dict[str, str]]:
        signed = {"x-ms-version": API_VERSION, **headers}
        if body and "Content-Type" not in signed:
            signed["Content-Type"] = "application/octet-stream"
        path = self._path(blob)
        self._credentials.sign(method, path, query, signed, len(body or b""))
        pairs = [f"{name}={quote(value, safe='')}" for name, value in query.items()]
        own = self._credentials.query()
        tail = "&".join([*pairs, own] if own else pairs)
        return f"{path}{'?' + tail if tail else ''}", signed

    def close(self) -> None:
        self._wire.close()
