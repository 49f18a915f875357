"""The verbs over one root in an Azure container."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from calque.errors import InvalidInput, NotFound, PermissionDenied, Unsupported
from calque.operator.capability import Capability
from calque.operator.http.paging import Turning, borders
from calque.operator.layers.chain import Chain
from calque.operator.options import CopyOptions, DeleteOptions, ReadOptions, WriteOptions
from calque.operator.service import CopyDriver, Leftover, Service
from calque.operator.services.azblob import blocks, resource
from calque.operator.services.azblob import copy as azblob_copy
from calque.operator.services.azblob import read as reading
from calque.operator.services.azblob.client import AzblobClient
from calque.operator.services.azblob.config import AzblobConfig
from calque.operator.services.azblob.errors import ContainerMissing
from calque.operator.services.azblob.requests import Requests
from calque.operator.services.azblob.resource import Page
from calque.operator.services.azblob.staging import Staging
from calque.operator.services.azblob.write import Upload
from calque.values import Metadata, ObjectIdentity
from calque.values.identity import normalised_endpoint

WEEK = 7 * 24 * 3600.0
PAGE = "5000"
_PUBLIC = re.compile(r"\.blob\.(core\.|storage\.azure\.)[^/:]+$")

CAPABILITY = Capability(
    unfit_in_keys="\\",
    write_with_if_not_exists=True,
    write_with_if_match=True,
    delete_with_if_match=True,
    read_with_if_match=True,
    read_goes_on=True,
    copy=True,
    copy_with_if_not_exists=True,
    copy_with_if_match=True,
    copy_source_pinned=True,
    copy_concurrent=True,
    copy_resumable=True,
    copy_resumable_for=WEEK,
    user_metadata=True,
    tags=True,
)


class AzblobService:
    """A root in a container."""

    def __init__(self, config: AzblobConfig, client: AzblobClient, chain: Chain) -> None:
        self._config = config
        self._client = client
        self._requests = Requests(client, chain)

    @property
    def scheme(self) -> str:
        return "az"

    @property
    def capability(self) -> Capability:
        return CAPABILITY

    @property
    def chain(self) -> Chain:
        return self._requests.chain

    def layered(self, chain: Chain) -> AzblobService:
        return AzblobService(self._config, self._client, chain)

    def location(self, path: str) -> str:
        return self._requests.location(path)

    def identity(self, path: str) -> ObjectIdentity:
        """Of the public cloud by account, however it is reached; of any other server by that."""
        server = normalised_endpoint(self._config.endpoint)
        public = _PUBLIC.search(server) is not None
        return ObjectIdentity(self.location(path), "" if public else server)

    def stat(self, path: str, *, version: str | None = None) -> Metadata:
        _refuse_version(version)
        return self._requests.stat(path)

    def tags_to_carry(self, source: Metadata) -> Mapping[str, str]:
        """The tags of a blob that is copied; raises where it has some that we may not read."""
        if source.tags is None:
            raise PermissionDenied(
                f"the tags of {self.location(source.path)} cannot be read",
                hint="Allow reading them, or copy with carry_tags=False.",
            )
        return source.tags

    def list(
        self, prefix: str, *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        marker = ""
        turning = Turning(self.location(prefix))
        while True:
            page = self._page(prefix, start_after, recursive, marker)
            for entry in page.entries:
                if entry.path > start_after:
                    yield entry
            marker = page.marker
            if not marker:
                return
            turning.check(marker, borders([entry.path for entry in page.entries]))

    def _page(
        self,
        prefix: str,
        start_after: str,
        recursive: bool,
        marker: str,
        include: str = "metadata",
    ) -> Page:
        requests = self._requests
        query = {
            "restype": "container",
            "comp": "list",
            "maxresults": PAGE,
            "include": include,
            "prefix": requests.key(prefix),
            "delimiter": "" if recursive else "/",
            "marker": marker,
            "startFrom": requests.key(start_after) if start_after and not marker else "",
        }
        sent = {name: value for name, value in query.items() if value}
        answer = requests.chain.send(
            "list",
            prefix,
            lambda call: self._client.ask(call, self.location(prefix), "GET", None, sent),
        )
        found, root = resource.page_of(answer.body), self._config.root
        cut = len(root) + 1 if root else 0
        entries = [replace(entry, path=entry.path[cut:]) for entry in found.entries]
        return Page(entries, found.marker)

    def read(self, path: str, options: ReadOptions) -> Iterator[bytes]:
        _refuse_version(options.version)
        return reading.read(self._requests, path, options)

    def write(self, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
        return Upload(self._requests, path, options).send(chunks)

    def delete(self, path: str, options: DeleteOptions) -> None:
        _refuse_version(options.version)
        headers = {"x-ms-delete-snapshots": "include"}
        if options.if_match is not None:
            headers["If-Match"] = resource.quoted(options.if_match)
        try:
            self._requests.about("delete", path, "DELETE", headers=headers)
        except NotFound as error:
            if isinstance(error, ContainerMissing):
                raise

    def copy(
        self, source: Metadata, target: str, options: CopyOptions, *, into: Service
    ) -> CopyDriver:
        verbs = self._verbs(source, target, options, into)
        if options.carry_tags and not verbs.is_one_request:
            self.tags_to_carry(source)
        return azblob_copy.driver_of(verbs)

    def resume(
        self,
        source: Metadata,
        target: str,
        options: CopyOptions,
        state: Mapping[str, Any],
        *,
        into: Service,
    ) -> CopyDriver:
        return azblob_copy.resumed_driver(self._verbs(source, target, options, into), state)

    def _verbs(
        self, source: Metadata, target: str, options: CopyOptions, into: Service
    ) -> azblob_copy.AzblobCopy:
        if not isinstance(into, AzblobService):
            raise Unsupported(
                f"Azure cannot copy {self.location(source.path)} to {into.location(target)} "
                "by itself"
            )
        return azblob_copy.AzblobCopy(
            origin=self._requests,
            into=into._requests,
            source=source,
            target=target,
            options=options,
        )

    def presign(self, method: str, path: str, seconds: int) -> tuple[str, Mapping[str, str]]:
        url = self._client.presign(method, self._requests.key(path), seconds)
        return url, {"x-ms-blob-type": "BlockBlob"} if method == "PUT" else {}

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        """Blobs that exist only as uncommitted blocks of ours.

        Blocks of ours beside a blob that exists are not looked for: nothing may be done about
        them, and the service collects them within a week. A blob that may not be looked at does not
        keep the rest from being found: its error is raised at the end.
        """
        marker, denied = "", None
        turning = Turning(self.location(prefix))
        while True:
            page = self._page(prefix, "", True, marker, include="uncommittedblobs")
            for entry in page.entries:
                if entry.size or entry.is_dir:
                    continue
                try:
                    yield from self._left(entry.path)
                except PermissionDenied as error:
                    denied = denied or error
            marker = page.marker
            if not marker:
                break
            turning.check(marker, borders([entry.path for entry in page.entries]))
        if denied is not None:
            raise denied

    def _left(self, path: str) -> Sequence[Leftover]:
        sizes: dict[str, int] = {}
        for id, size in self._requests.block_list(path).uncommitted:
            block = blocks.Block.read(id)
            if block is not None:
                sizes[block.write] = sizes.get(block.write, 0) + size
        if not sizes or self._requests.exists(path):
            return []
        where = self.location(path)
        return [
            Leftover(where, "uncommitted blocks", write, blocks.started(write), total)
            for write, total in sizes.items()
        ]

    def remove_leftover(self, leftover: Leftover) -> None:
        base = self.location("")
        if not leftover.location.startswith(base) or not blocks.is_write(leftover.id):
            raise InvalidInput(f"{leftover.location} is no leftover under {base}")
        Staging(self._requests, leftover.location[len(base) :], leftover.id).discard()

    def close(self) -> None:
        self._client.close()


def _refuse_version(version: str | None) -> None:
    if version is not None:
        raise Unsupported("versions of Azure blobs are not served yet")
