"""A root in a memory store: what it can do, and which file does it."""

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
from calque.operator.services.memory.client import Client
from calque.operator.services.memory.config import MemoryConfig
from calque.operator.services.memory.copy import MemoryCopy, make_driver
from calque.operator.services.memory.delete import delete
from calque.operator.services.memory.leftovers import list_leftovers, remove_leftover
from calque.operator.services.memory.list import list_objects, list_versions
from calque.operator.services.memory.read import read
from calque.operator.services.memory.stat import stat
from calque.operator.services.memory.store import MemoryStore
from calque.operator.services.memory.write import write
from calque.values import Metadata, ObjectIdentity

CAPABILITY = Capability(
    etags_are_md5=True,
    checksums=frozenset({"md5", "crc32"}),
    write_with_if_not_exists=True,
    write_with_if_match=True,
    delete_with_if_match=True,
    read_with_if_match=True,
    copy=True,
    copy_with_if_not_exists=True,
    copy_with_if_match=True,
    copy_source_pinned=True,
    copy_concurrent=True,
    copy_resumable=True,
    user_metadata=True,
    tags=True,
)


class MemoryService(ClientService[Client]):
    """A root in a memory store."""

    def __init__(self, config: MemoryConfig, store: MemoryStore, chain: Chain) -> None:
        super().__init__(Client(config, store, chain))

    @property
    def scheme(self) -> str:
        return "memory"

    @property
    def capability(self) -> Capability:
        kept = self._client.store.versions
        return replace(
            CAPABILITY,
            copy_listed_up_to=self._client.config.threshold,
            versions=kept,
            read_with_version=kept,
        )

    def with_chain(self, chain: Chain) -> MemoryService:
        return MemoryService(self._client.config, self._client.store, chain)

    def identity(self, path: str) -> ObjectIdentity:
        return ObjectIdentity(self.location(path))

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
        return write(self._client, path, chunks, options)

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
        if not isinstance(into, MemoryService) or into._client.store is not self._client.store:
            raise Unsupported(
                f"memory cannot copy from {self.location(source.path)} to {into.location(target)}"
            )
        return make_driver(MemoryCopy(self._client, into._client, source, target, options), state)

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        return list_leftovers(self._client, prefix)

    def remove_leftover(self, leftover: Leftover) -> None:
        remove_leftover(self._client, leftover)
