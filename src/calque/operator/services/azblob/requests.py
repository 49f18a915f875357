"""Requests of one root in a container, sent through the layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from calque.errors import (
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    PermissionDenied,
    Unexpected,
)
from calque.operator import paths
from calque.operator.http.exchange import Answer
from calque.operator.layers.chain import Call, Chain
from calque.operator.services.azblob import resource
from calque.operator.services.azblob.client import AzblobClient
from calque.operator.services.azblob.resource import BlockList
from calque.values import Metadata


@dataclass(frozen=True, slots=True)
class Requests:
    """What every verb needs: where blobs are, and a way to ask."""

    client: AzblobClient
    chain: Chain

    def key(self, path: str) -> str:
        """The blob's name, without what Azure would make another name of: a backslash becomes a
        slash, a segment ``.`` is dropped."""
        if "\\" in path:
            raise InvalidInput(f"Azure cannot keep a backslash in a blob's name: {path!r}")
        if "." in path.split("/"):
            raise InvalidInput(f"Azure cannot keep a segment '.' in a blob's name: {path!r}")
        return paths.join(self.client.config.root, paths.unicode_path(path))

    def location(self, path: str) -> str:
        """By account, not by endpoint: two ways to one blob have one location."""
        config = self.client.config
        return f"az://{config.account}.blob/{config.container}/{self.key(path)}"

    def about(
        self,
        verb: str,
        path: str,
        method: str,
        query: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        slow: bool = False,
    ) -> Answer:
        """Ask something about one blob; the successful answer."""

        def request(call: Call) -> Answer:
            return self.client.ask(
                call,
                self.location(path),
                method,
                self.key(path),
                query,
                headers=headers,
                body=body,
            )

        return self.chain.send(verb, path, request, slow=slow)

    def head(self, path: str, etag: str | None = None) -> Mapping[str, str]:
        """The headers that describe a blob, of this etag where one is given."""
        headers = {} if etag is None else {"If-Match": resource.quoted(etag)}
        return self.about("stat", path, "HEAD", headers=headers).headers

    def made(self, path: str, answer: Answer, size: int) -> Metadata:
        """The blob that an answer says was made, looked at by its etag.

        Where another writer has replaced it since, what the answer tells: never another's blob.
        """
        etag = resource.plain(answer.headers.get("etag"))
        if etag is None:
            raise Unexpected(f"Azure answered for {self.location(path)} without an etag")
        try:
            return resource.metadata_of(path, self.head(path, etag))
        except (ConditionNotMatch, NotFound):
            return Metadata(path=path, size=size, etag=etag)

    def stat(self, path: str) -> Metadata:
        found = resource.metadata_of(path, self.head(path))
        return found if found.tags is not None else replace(found, tags=self._tags(path))

    def exists(self, path: str) -> bool:
        """Whether there is a blob; one that is only staged is none, one without blocks is one."""
        try:
            self.head(path)
        except NotFound:
            return False
        return True

    def _tags(self, path: str) -> dict[str, str] | None:
        """A blob's tags; None where we may not read them."""
        try:
            answer = self.about("stat", path, "GET", {"comp": "tags"})
        except PermissionDenied:
            return None
        return resource.tags_of(answer.body)

    def block_list(self, path: str) -> BlockList:
        """All blocks of a blob, staged and committed; none where there is no blob."""
        query = {"comp": "blocklist", "blocklisttype": "all"}
        try:
            answer = self.about("list_parts", path, "GET", query)
        except NotFound:
            return BlockList()
        return resource.block_list_of(answer.body)
