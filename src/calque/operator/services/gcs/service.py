"""The verbs over one root in a GCS bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any
from urllib.parse import quote

from calque.errors import NotFound, Unexpected, Unsupported
from calque.operator.capability import Capability
from calque.operator.http.paging import Turning, borders
from calque.operator.layers.chain import Chain
from calque.operator.options import CopyOptions, DeleteOptions, ReadOptions, WriteOptions
from calque.operator.service import CopyDriver, Leftover, Service
from calque.operator.services.gcs import copy as gcs_copy
from calque.operator.services.gcs import read as reading
from calque.operator.services.gcs.client import GcsClient
from calque.operator.services.gcs.config import GcsConfig
from calque.operator.services.gcs.errors import BucketMissing
from calque.operator.services.gcs.requests import Requests
from calque.operator.services.gcs.resource import LISTED, metadata_of
from calque.operator.services.gcs.write import Upload
from calque.values import Metadata, ObjectIdentity
from calque.values.identity import normalised_endpoint

WEEK = 7 * 24 * 3600.0
PAGE = 1000

CAPABILITY = Capability(
    write_with_if_not_exists=True,
    write_with_if_match=True,
    delete_with_if_match=True,
    read_with_if_match=True,
    read_goes_on=True,
    copy=True,
    copy_with_if_not_exists=True,
    copy_with_if_match=True,
    copy_source_pinned=True,
    copy_concurrent=False,
    copy_resumable=True,
    copy_resumable_for=WEEK,
    user_metadata=True,
    tags=False,
)


class GcsService:
    """A root in a bucket."""

    def __init__(self, config: GcsConfig, client: GcsClient, chain: Chain) -> None:
        self._config = config
        self._client = client
        self._requests = Requests(client, chain, config.bucket, config.root)

    @property
    def scheme(self) -> str:
        return "gs"

    @property
    def capability(self) -> Capability:
        kept = self._config.versions
        return replace(CAPABILITY, versions=kept, read_with_version=kept)

    @property
    def chain(self) -> Chain:
        return self._requests.chain

    def layered(self, chain: Chain) -> GcsService:
        return GcsService(self._config, self._client, chain)

    def location(self, path: str) -> str:
        return self._requests.location(path)

    def identity(self, path: str) -> ObjectIdentity:
        return ObjectIdentity(self.location(path), self._server)

    @property
    def _server(self) -> str:
        return normalised_endpoint(self._client.endpoint)

    def stat(self, path: str, *, version: str | None = None) -> Metadata:
        return self._requests.stat(path, version)

    def list(
        self, prefix: str, *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        token: str | None = None
        turning = Turning(self.location(prefix))
        while True:
            page = self._page(prefix, start_after, recursive, token)
            entries = self._entries(page)
            for entry in entries:
                # startOffset includes its own key, and a folder that begins before it.
                if entry.path > start_after:
                    yield entry
            token = page.get("nextPageToken")
            if not token:
                return
            turning.check(str(token), borders([entry.path for entry in entries]))

    def list_versions(self, prefix: str) -> Iterator[Metadata]:
        """GCS lists the oldest generation of a key first, so those of one key are turned round."""
        for _, generations in groupby(self._generations(prefix), key=lambda entry: entry.path):
            yield from reversed(list(generations))

    def _generations(self, prefix: str) -> Iterator[Metadata]:
        token: str | None = None
        while True:
            page = self._page(prefix, "", True, token, versions=True)
            yield from sorted(
                self._entries(page), key=lambda entry: (entry.path, int(entry.version or 0))
            )
            token = page.get("nextPageToken")
            if not token:
                return

    def _page(
        self,
        prefix: str,
        start_after: str,
        recursive: bool,
        token: str | None,
        *,
        versions: bool = False,
    ) -> dict[str, Any]:
        requests = self._requests
        query = {
            "prefix": requests.key(prefix) or None,
            "delimiter": None if recursive else "/",
            "startOffset": requests.key(start_after) if start_after else None,
            "pageToken": token,
            "versions": "true" if versions else None,
            "maxResults": PAGE,
            "fields": LISTED,
        }
        bucket = quote(requests.bucket, safe="")
        url = self._client.url(f"/storage/v1/b/{bucket}/o", query)
        return requests.chain.send(
            "list", prefix, lambda call: self._client.ask(call, self.location(prefix), "GET", url)
        )

    def _entries(self, page: Mapping[str, Any]) -> Sequence[Metadata]:
        cut = len(self._config.root) + 1 if self._config.root else 0
        try:
            found = [metadata_of(item, str(item["name"])[cut:]) for item in page.get("items", ())]
            folders = page.get("prefixes", ())
            found += [Metadata(path=folder[cut:], is_dir=True) for folder in folders]
        except (KeyError, TypeError) as error:
            raise Unexpected(
                f"GCS lists {self.location('')} in a way that cannot be read"
            ) from error
        found.sort(key=lambda entry: entry.path)
        return found

    def read(self, path: str, options: ReadOptions) -> Iterator[bytes]:
        return reading.read(self._requests, path, options)

    def write(self, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
        return Upload(self._requests, path, options).send(chunks)

    def delete(self, path: str, options: DeleteOptions) -> None:
        requests = self._requests
        query = {
            "generation": options.version,
            "ifGenerationMatch": requests.generation_of(path, options.if_match),
        }
        try:
            requests.about("delete", path, "DELETE", query)
        except NotFound as error:
            if isinstance(error, BucketMissing):
                raise

    def copy(
        self, source: Metadata, target: str, options: CopyOptions, *, into: Service
    ) -> CopyDriver:
        return gcs_copy.driver_of(self._verbs(source, target, options, into))

    def resume(
        self,
        source: Metadata,
        target: str,
        options: CopyOptions,
        state: Mapping[str, Any],
        *,
        into: Service,
    ) -> CopyDriver:
        return gcs_copy.resumed_driver(self._verbs(source, target, options, into), state)

    def _verbs(
        self, source: Metadata, target: str, options: CopyOptions, into: Service
    ) -> gcs_copy.GcsCopy:
        if not isinstance(into, GcsService) or into._server != self._server:
            raise Unsupported(
                f"GCS cannot copy {self.location(source.path)} to {into.location(target)} by itself"
            )
        return gcs_copy.GcsCopy(
            origin=self._requests,
            into=into._requests,
            source=source,
            target=target,
            options=options,
        )

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        """None: a rewrite that is given up leaves nothing that could be seen or paid for."""
        return iter(())

    def remove_leftover(self, leftover: Leftover) -> None:
        raise Unsupported("copies within GCS leave nothing to remove")

    def close(self) -> None:
        self._client.close()
