"""A root in an Azure container: what it can do, and which file does it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from calque.errors import Unsupported
from calque.operator.capability import Capability
from calque.operator.layers.chain import Chain
from calque.operator.options import CopyOptions, DeleteOptions, ReadOptions, WriteOptions
from calque.operator.service import CopyDriver, Leftover, Service
from calque.operator.services.azblob.client import Client
from calque.operator.services.azblob.copy import AzblobCopy, make_driver
from calque.operator.services.azblob.delete import delete
from calque.operator.services.azblob.leftovers import list_leftovers, remove_leftover
from calque.operator.services.azblob.list import list_blobs
from calque.operator.services.azblob.parted_write import AzblobPartedWrite
from calque.operator.services.azblob.presign import presign
from calque.operator.services.azblob.read import read
from calque.operator.services.azblob.stat import refuse_version, stat, tags_to_carry
from calque.operator.services.azblob.write import Upload
from calque.operator.services.client_service import ClientService
from calque.values import Metadata, ObjectIdentity
from calque.values.identity import normalise_endpoint

_WEEK = 7 * 24 * 3600.0
"""How long the service keeps blocks that are not committed."""
_PUBLIC = re.compile(r"\.blob\.(core\.|storage\.azure\.)[^/:]+$")

CAPABILITY = Capability(
    checksums=frozenset({"md5"}),
    step_of_times=1.0,
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
    copy_resumable_for=_WEEK,
    user_metadata=True,
    tags=True,
)


class AzblobService(ClientService[Client]):
    """A root in a container."""

    @property
    def scheme(self) -> str:
        return "az"

    @property
    def capability(self) -> Capability:
        return CAPABILITY

    def with_chain(self, chain: Chain) -> AzblobService:
        return AzblobService(replace(self._client, chain=chain))

    def identity(self, path: str) -> ObjectIdentity:
        """Of the public cloud by account, however it is reached; of any other server by that."""
        server = normalise_endpoint(self._client.link.config.endpoint)
        public = _PUBLIC.search(server) is not None
        return ObjectIdentity(self.location(path), "" if public else server)

    def stat(self, path: str, *, version: str | None = None) -> Metadata:
        refuse_version(version)
        return stat(self._client, path)

    def tags_to_carry(self, source: Metadata) -> Mapping[str, str]:
        return tags_to_carry(self._client, source)

    def list(
        self, prefix: str, *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        return list_blobs(self._client, prefix, start_after=start_after, recursive=recursive)

    def read(self, path: str, options: ReadOptions) -> Iterator[bytes]:
        return read(self._client, path, options)

    def write(self, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
        return Upload(self._client, path, options).send(chunks)

    def write_in_parts(self, path: str, options: WriteOptions) -> AzblobPartedWrite:
        """A blob staged block by block, by one process or several in turn."""
        return AzblobPartedWrite(Upload(self._client, path, options))

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
        if not isinstance(into, AzblobService):
            raise Unsupported(
                f"Azure cannot copy {self.location(source.path)} to {into.location(target)} "
                "by itself"
            )
        return make_driver(AzblobCopy(self._client, into._client, source, target, options), state)

    def presign(self, method: str, path: str, seconds: int) -> tuple[str, Mapping[str, str]]:
        return presign(self._client, method, path, seconds)

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        return list_leftovers(self._client, prefix)

    def remove_leftover(self, leftover: Leftover) -> None:
        remove_leftover(self._client, leftover)
