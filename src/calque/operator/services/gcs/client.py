"""Requests of the JSON API: signed, sent through the layers, and refused or returned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from calque.errors import Unexpected
from calque.operator import paths
from calque.operator.http.exchange import Answer, Body, Wire
from calque.operator.http.html_replies import refuse_page
from calque.operator.layers.chain import Call, Chain
from calque.operator.services.gcs.config import GcsConfig
from calque.operator.services.gcs.credentials import Credentials
from calque.operator.services.gcs.errors import error_of

Query = Mapping[str, str | int | None]


class Link:
    """Connections and credentials of one endpoint, shared by clients and their layers."""

    def __init__(self, config: GcsConfig) -> None:
        self.config = config
        self.credentials = Credentials(config)
        self._wire = Wire(config.endpoint, ca_bundle=config.ca_bundle)
        # An endpoint may lie below a path, behind a gateway for example.
        self._base = urlsplit(config.endpoint).path.rstrip("/")

    def url(self, path: str, query: Query) -> str:
        """The target of an API path; parameters that are None are left out."""
        given = {name: value for name, value in query.items() if value is not None}
        if self.config.user_project is not None:
            given["userProject"] = self.config.user_project
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
        self.credentials.sign(signed)
        return self._wire.exchange(method, url, signed, body, call=call)

    def open(self, call: Call, url: str, headers: Mapping[str, str]) -> tuple[Answer, Body]:
        """Ask for bytes; they are read as the iterator is."""
        signed = dict(headers)
        self.credentials.sign(signed)
        return self._wire.open(url, signed, call=call)

    def close(self) -> None:
        self._wire.close()


@dataclass(frozen=True, slots=True)
class Client:
    """What every verb needs: where objects are, and a way to ask through the layers."""

    link: Link
    chain: Chain

    @property
    def bucket(self) -> str:
        return self.link.config.bucket

    def key(self, path: str) -> str:
        return paths.join(self.link.config.root, paths.unicode_path(path))

    def location(self, path: str) -> str:
        return f"gs://{self.bucket}/{self.key(path)}"

    def send(
        self,
        verb: str,
        path: str,
        method: str,
        query: Query,
        *,
        listed: bool = False,
    ) -> dict[str, Any]:
        """Ask about one object (``listed``: about those of its bucket); the JSON of the answer."""
        target = objects_path(self.bucket) if listed else object_path(self.bucket, self.key(path))
        url, location = self.link.url(target, query), self.location(path)

        def request(call: Call) -> dict[str, Any]:
            answer = self.link.exchange(call, method, url)
            if not 200 <= answer.status < 300:
                raise error_of(answer, location, verb)
            refuse_page(answer.body, location)
            # A deletion is answered without a body.
            return {} if method == "DELETE" else document(answer, location)

        return self.chain.send(verb, path, request)

    def close(self) -> None:
        self.link.close()


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


def objects_path(bucket: str) -> str:
    """The API path of a bucket's objects."""
    return f"/storage/v1/b/{quote(bucket, safe='')}/o"


def object_path(bucket: str, key: str) -> str:
    """The API path of an object; its name is one path segment, fully encoded."""
    return f"{objects_path(bucket)}/{quote(key, safe='')}"
