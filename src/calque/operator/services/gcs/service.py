"""A root in a GCS bucket: what it can do, and which file does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from calque.errors import Unsupported
from calque.operator.capability import Capability
from calque.operator.layers.chain import Chain
from calque.operator.options import CopyOptions, DeleteOptions, ReadOptions, WriteOptions
from calque.operator.service import CopyDriver, Leftover, Service
from calque.operator.services.client_service import ClientService
from calque.operator.services.gcs.client import Client
from calque.operator.services.gcs.copy import GcsCopy, make_driver
from calque.operator.services.gcs.delete import delete
from calque.operator.services.gcs.leftovers import list_leftovers, remove_leftover
from calque.operator.services.gcs.list import list_objects, list_versions
from calque.operator.services.gcs.parted_write import GcsPartedWrite
from calque.operator.services.gcs.presign import presign
from calque.operator.services.gcs.read import read
from calque.operator.services.gcs.stat import stat
from calque.operator.services.gcs.write import Upload
from calque.values import Metadata, ObjectIdentity
from calque.values.identity import normalise_endpoint

_WEEK = 7 * 24 * 3600.0
"""How long the token of a rewrite is good for."""

CAPABILITY = Capability(
    checksums=frozenset({"crc32c"}),
    step_of_times=0.001,
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
    copy_resumable_for=_WEEK,
    user_metadata=True,
    tags=False,
)


class GcsService(ClientService[Client]):
    """A root in a bucket."""

    @property
    def scheme(self) -> str:
        return "gs"

    @property
    def capability(self) -> Capability:
        kept = self._client.link.config.versions
        return replace(CAPABILITY, versions=kept, read_with_version=kept)

    def with_chain(self, chain: Chain) -> GcsService:
        return GcsService(replace(self._client, chain=chain))

    def identity(self, path: str) -> ObjectIdentity:
        return ObjectIdentity(self.location(path), self._server)

    @property
    def _server(self) -> str:
        return normalise_endpoint(self._client.link.config.endpoint)

    def stat(self, path: str, *, version: str | None = None) -> Metadata:
        return stat(self._client, path, version)

    def list(
        self, prefix: str, *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        return list_objects(self._client, prefix, start_after=start_after, recursive=recursive)

    def list_versions(self, prefix: str) -> Iterator[Metadata]:
        return list_versions(self._client, prefix)

    def read(self, path: str, options: ReadOptions) -> Iterator[bytes]:
        return read(self._client, path, options)

    def write(self, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
        return Upload(self._client, path, options).send(chunks)

    def write_in_parts(self, path: str, options: WriteOptions) -> GcsPartedWrite:
        """An object written into a session, by one process or several in turn."""
        return GcsPartedWrite(Upload(self._client, path, options))

    def delete(self, path: str, options: DeleteOptions) -> None:
        delete(self._client, path, options)

    def _driver(
        self,
        source: Metadata,
        target: str,
        options: CopyOptions,
        into: Service,
        state: Mapping[str, Any] | None = None,
    ) -> CopyDriver:
        if not isinstance(into, GcsService) or into._server != self._server:
            raise Unsupported(
                f"GCS cannot copy {self.location(source.path)} to {into.location(target)} by itself"
            )
        return make_driver(GcsCopy(self._client, into._client, source, target, options), state)

    def presign(self, method: str, path: str, seconds: int) -> tuple[str, Mapping[str, str]]:
        return presign(self._client, method, path, seconds)

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        return list_leftovers(self._client, prefix)

    def remove_leftover(self, leftover: Leftover) -> None:
        remove_leftover(self._client, leftover)
