"""How Azure serves the bytes of a blob."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from calque.errors import ConditionNotMatch
from calque.operator.http import body
from calque.operator.http.body import NothingLeft, OpenReply
from calque.operator.layers.chain import Call
from calque.operator.options import ReadOptions
from calque.operator.services.azblob.client import Client
from calque.operator.services.azblob.errors import code_of, error_of
from calque.operator.services.azblob.resource import quote_etag, unquote_etag
from calque.operator.services.azblob.stat import head, refuse_version
from calque.values import Checksum


def read(client: Client, path: str, options: ReadOptions) -> Iterator[bytes]:
    """The bytes of a range, held against what their reply says of them."""
    refuse_version(options.version)
    if options.range.length == 0:
        return _read_nothing(client, path, options.if_match)
    return body.read(_Blob(client, path), options)


def _read_nothing(client: Client, path: str, if_match: str | None) -> Iterator[bytes]:
    """No bytes, of a blob that must be there and be the one that is meant."""
    found = unquote_etag(head(client, path).get("etag"))
    if if_match is not None and unquote_etag(if_match) != found:
        raise ConditionNotMatch(f"{client.location(path)} was replaced by another blob")
    return iter(())


@dataclass(frozen=True, slots=True)
class _Blob:
    """One blob; its pin is its etag."""

    client: Client
    path: str

    @property
    def location(self) -> str:
        return self.client.location(self.path)

    def open(self, span: str | None, pin: str | None) -> OpenReply | NothingLeft:
        headers = {} if pin is None else {"If-Match": quote_etag(pin)}
        if span is not None:
            headers["x-ms-range"] = span

        def request(call: Call) -> OpenReply | NothingLeft:
            blob = self.client.key(self.path)
            answer, pieces = self.client.link.open(call, blob, headers)
            if span is not None and (answer.status == 416 or code_of(answer) == "InvalidRange"):
                return NothingLeft.of(answer.headers)
            if answer.status not in (200, 206):
                raise error_of(answer, self.location, "read")
            return OpenReply(answer.status, answer.headers, pieces, pieces.close)

        return self.client.chain.send("read", self.path, request)

    def is_pinned_by(self, pin: str, headers: Mapping[str, str]) -> bool:
        return pin == "*" or unquote_etag(pin) == unquote_etag(headers.get("etag"))

    def pin_of(self, headers: Mapping[str, str]) -> str | None:
        return unquote_etag(headers.get("etag"))

    def checksums_of(self, headers: Mapping[str, str]) -> Iterable[Checksum]:
        # The answer to a range has the blob's own MD5 under another name.
        whole = "x-ms-blob-content-md5" if "content-range" in headers else "content-md5"
        if md5 := headers.get(whole):
            yield Checksum("md5", md5)
