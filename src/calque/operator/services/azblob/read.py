"""How Azure serves the bytes of a blob."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from calque.errors import ConditionNotMatch
from calque.operator.http import body
from calque.operator.http.body import Opened
from calque.operator.layers.chain import Call
from calque.operator.options import ReadOptions
from calque.operator.services.azblob import resource
from calque.operator.services.azblob.errors import code_of, refusal
from calque.operator.services.azblob.requests import Requests
from calque.values import Checksum


def read(requests: Requests, path: str, options: ReadOptions) -> Iterator[bytes]:
    """The bytes of a range, held against what their reply says of them."""
    if options.range.length == 0:
        return _nothing(requests, path, options.if_match)
    return body.read(_Blob(requests, path), options)


def _nothing(requests: Requests, path: str, if_match: str | None) -> Iterator[bytes]:
    """No bytes, of a blob that must be there and be the one that is meant."""
    found = resource.plain(requests.head(path).get("etag"))
    if if_match is not None and resource.plain(if_match) != found:
        raise ConditionNotMatch(f"{requests.location(path)} was replaced by another blob")
    return iter(())


@dataclass(frozen=True, slots=True)
class _Blob:
    """One blob; its pin is its etag."""

    requests: Requests
    path: str

    @property
    def location(self) -> str:
        return self.requests.location(self.path)

    def open(self, span: str | None, pin: str | None) -> Opened | None:
        headers = {} if pin is None else {"If-Match": resource.quoted(pin)}
        if span is not None:
            headers["x-ms-range"] = span

        def request(call: Call) -> Opened | None:
            requests = self.requests
            answer, pieces = requests.client.open(call, requests.key(self.path), headers)
            if span is not None and (answer.status == 416 or code_of(answer) == "InvalidRange"):
                return None
            if answer.status not in (200, 206):
                raise refusal(answer, self.location, "read")
            return Opened(answer.status, answer.headers, pieces, pieces.close)

        return self.requests.chain.send("read", self.path, request)

    def is_pinned_by(self, pin: str, headers: Mapping[str, str]) -> bool:
        return pin == "*" or resource.plain(pin) == resource.plain(headers.get("etag"))

    def pin_of(self, headers: Mapping[str, str]) -> str | None:
        return resource.plain(headers.get("etag"))

    def checksums_of(self, headers: Mapping[str, str]) -> Iterable[Checksum]:
        # The answer to a range has the blob's own MD5 under another name.
        whole = "x-ms-blob-content-md5" if "content-range" in headers else "content-md5"
        if md5 := headers.get(whole):
            yield Checksum("md5", md5)
