"""How GCS serves the bytes of an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from calque.errors import ConditionNotMatch
from calque.operator.http import body
from calque.operator.http.body import Opened
from calque.operator.layers.chain import Call
from calque.operator.options import ReadOptions
from calque.operator.services.gcs.client import object_path
from calque.operator.services.gcs.errors import refusal
from calque.operator.services.gcs.requests import Requests
from calque.values import Checksum

_GENERATION = "x-goog-generation"


def read(requests: Requests, path: str, options: ReadOptions) -> Iterator[bytes]:
    """The bytes of a range, held against what their reply says of them."""
    generation = requests.generation_of(path, options.if_match)
    if options.range.length == 0:
        return _nothing(requests, path, options.version, generation)
    pinned = replace(options, if_match=generation or options.version)
    return body.read(_Object(requests, path, options.version), pinned)


def _nothing(
    requests: Requests, path: str, version: str | None, generation: str | None
) -> Iterator[bytes]:
    """No bytes, of an object that must be there and be the one that is meant."""
    found = requests.stat(path, version)
    if generation not in (None, found.version):
        raise ConditionNotMatch(f"{requests.location(path)} was replaced by another object")
    return iter(())


@dataclass(frozen=True, slots=True)
class _Object:
    """One object; its pin is its generation."""

    requests: Requests
    path: str
    version: str | None

    @property
    def location(self) -> str:
        return self.requests.location(self.path)

    def open(self, span: str | None, pin: str | None) -> Opened | None:
        requests, client = self.requests, self.requests.client
        query = {
            "alt": "media",
            "generation": self.version,
            "ifGenerationMatch": pin if self.version is None else None,
        }
        target = object_path(requests.bucket, requests.key(self.path), "/download")
        url = client.url(target, query)
        # Taking gzip keeps the service from unpacking what is stored packed.
        headers = {"Accept-Encoding": "gzip", **({"Range": span} if span else {})}

        def request(call: Call) -> Opened | None:
            answer, pieces = client.open(call, url, headers)
            if answer.status == 416 and span is not None:
                return None
            if answer.status not in (200, 206):
                raise refusal(answer, self.location, "read")
            return Opened(answer.status, answer.headers, pieces, pieces.close)

        return requests.chain.send("read", self.path, request)

    def is_pinned_by(self, pin: str, headers: Mapping[str, str]) -> bool:
        return pin == headers.get(_GENERATION)

    def pin_of(self, headers: Mapping[str, str]) -> str | None:
        return headers.get(_GENERATION)

    def checksums_of(self, headers: Mapping[str, str]) -> Iterable[Checksum]:
        if headers.get("x-goog-stored-content-encoding") not in (None, _encoding(headers)):
            return  # unpacked on its way: the checksums are those of the packed bytes
        for stated in headers.get("x-goog-hash", "").split(","):
            kind, equals, value = stated.strip().partition("=")
            if equals:
                yield Checksum(kind, value)


def _encoding(headers: Mapping[str, str]) -> str:
    return headers.get("content-encoding", "identity")
