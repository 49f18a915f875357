"""How GCS serves the bytes of an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from calque.errors import ConditionNotMatch
from calque.operator.http import body
from calque.operator.http.body import NothingLeft, OpenReply
from calque.operator.layers.chain import Call
from calque.operator.options import ReadOptions
from calque.operator.services.gcs.client import Client, object_path
from calque.operator.services.gcs.errors import error_of
from calque.operator.services.gcs.stat import find_generation, stat
from calque.values import Checksum

_GENERATION = "x-goog-generation"


def read(client: Client, path: str, options: ReadOptions) -> Iterator[bytes]:
    """The bytes of a range, held against what their reply says of them."""
    generation = find_generation(client, path, options.if_match)
    if options.range.length == 0:
        return _read_nothing(client, path, options.version, generation)
    pinned = replace(options, if_match=generation or options.version)
    return body.read(_Object(client, path, options.version), pinned)


def _read_nothing(
    client: Client, path: str, version: str | None, generation: str | None
) -> Iterator[bytes]:
    """No bytes, of an object that must be there and be the one that is meant."""
    found = stat(client, path, version)
    if generation not in (None, found.version):
        raise ConditionNotMatch(f"{client.location(path)} was replaced by another object")
    return iter(())


@dataclass(frozen=True, slots=True)
class _Object:
    """One object; its pin is its generation."""

    client: Client
    path: str
    version: str | None

    @property
    def location(self) -> str:
        return self.client.location(self.path)

    def open(self, span: str | None, pin: str | None) -> OpenReply | NothingLeft:
        client, link = self.client, self.client.link
        query = {
            "alt": "media",
            "generation": self.version,
            # A generation that is asked for by number cannot be another one.
            "ifGenerationMatch": pin if self.version is None else None,
        }
        target = object_path(client.bucket, client.key(self.path))
        url = link.url(f"/download{target}", query)
        # Taking gzip keeps the service from unpacking what is stored packed.
        headers = {"Accept-Encoding": "gzip", **({"Range": span} if span else {})}

        def request(call: Call) -> OpenReply | NothingLeft:
            answer, pieces = link.open(call, url, headers)
            # Nothing from here on: the range begins at the end, or the object is empty.
            if answer.status == 416 and span is not None:
                return NothingLeft.of(answer.headers)
            if answer.status not in (200, 206):
                raise error_of(answer, self.location, "read")
            return OpenReply(answer.status, answer.headers, pieces, pieces.close)

        return client.chain.send("read", self.path, request)

    def is_pinned_by(self, pin: str, headers: Mapping[str, str]) -> bool:
        return pin == headers.get(_GENERATION)

    def pin_of(self, headers: Mapping[str, str]) -> str | None:
        return headers.get(_GENERATION)

    def checksums_of(self, headers: Mapping[str, str]) -> Iterable[Checksum]:
        if headers.get("x-goog-stored-content-encoding") not in (None, _encoding_of(headers)):
            return  # unpacked on its way: the checksums are those of the packed bytes
        for stated in headers.get("x-goog-hash", "").split(","):
            kind, equals, value = stated.strip().partition("=")
            if equals:
                yield Checksum(kind, value)


def _encoding_of(headers: Mapping[str, str]) -> str:
    return headers.get("content-encoding", "identity")
