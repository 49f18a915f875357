"""One request of the JSON API: signed, sent, and refused or returned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from calque.errors import Unexpected
from calque.operator.http.exchange import Answer, Body, Wire
from calque.operator.layers.chain import Call
from calque.operator.services.gcs.config import GcsConfig
from calque.operator.services.gcs.credentials import Credentials
from calque.operator.services.gcs.errors import refusal

Query = Mapping[str, str | int | None]


class GcsClient:
    """Connections and credentials of one endpoint, shared by services and their layers."""

    def __init__(self, config: GcsConfig) -> None:
        self._config = config
        self._wire = Wire(config.endpoint, ca_bundle=config.ca_bundle)
        self._base = urlsplit(config.endpoint).path.rstrip("/")
        self._credentials = Credentials(config)

    @property
    def endpoint(self) -> str:
        return self._config.endpoint

    def url(self, path: str, query: Query) -> str:
        """The target of an API path; parameters that are None are left out."""
        given = {name: value for name, value in query.items() if value is not None}
        if self._config.user_project is not None:
            given["userProject"] = self._config.user_project
        tail = f"?{urlencode(given, quote_via=quote)}" if given else ""
        return f"{self._base}{path}{tail}"

    def exchange(
        self,
        call: Call,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send one request; the answer may be a refusal."""
        signed = {"Accept": "application/json", **(headers or {})}
        self._credentials.sign(signed)
        return self._wire.exchange(method, url, signed, body, call=call)

    def open(self, call: Call, url: str, headers: Mapping[str, str]) -> tuple[Answer, Body]:
        """Ask for bytes; they are read as the iterator is."""
        signed = dict(headers)
        self._credentials.sign(signed)
        return self._wire.open(url, signed, call=call)

    def ask(
        self,
        call: Call,
        location: str,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> dict[str, Any]:
        """Send one request and return the JSON object of its success; raise its refusal."""
        answer = self.exchange(call, method, url, headers=headers, body=body)
        if not 200 <= answer.status < 300:
            raise refusal(answer, location, call.verb)
        return {} if method == "DELETE" else document(answer, location)

    def close(self) -> None:
        self._wire.close()


def document(answer: Answer, location: str) -> dict[str, Any]:
    """The JSON object of an answer; a success that holds none is an error."""
    try:
        parsed = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise Unexpected(
            f"GCS answered {answer.status} for {location} without a readable body",
            retryable=True,
        ) from error
    if not isinstance(parsed, dict) or "error" in parsed:
        raise Unexpected(
            f"GCS answered {answer.status} for {location} with an error in its body",
            retryable=True,
        )
    return parsed


def object_path(bucket: str, key: str, prefix: str = "") -> str:
    """The API path of an object; its name is one path segment, fully encoded."""
    return f"{prefix}/storage/v1/b/{quote(bucket, safe='')}/o/{quote(key, safe='')}"
