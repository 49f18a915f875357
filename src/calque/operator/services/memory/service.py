"""The verbs over a memory store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from calque.errors import Unsupported
from calque.operator import paths
from calque.operator.capability import Capability
from calque.operator.layers.chain import Chain
from calque.operator.options import CopyOptions, DeleteOptions, ReadOptions, WriteOptions
from calque.operator.service import CopyDriver, Leftover, Service
from calque.operator.services.memory.config import MemoryConfig
from calque.operator.services.memory.copy import MemoryCopy, driver_of, resumed_driver
from calque.operator.services.memory.requests import Requests
from calque.operator.services.memory.store import Condition, MemoryStore
from calque.values import MIB, Metadata, ObjectIdentity

_CHUNK = 1 * MIB


class MemoryService:
    """A root in a memory store."""

    def __init__(self, config: MemoryConfig, store: MemoryStore, chain: Chain) -> None:
        self._config = config
        self._store = store
        self._chain = chain
        self._requests = Requests(store, chain, config.root)

    @property
    def scheme(self) -> str:
        return "memory"

    @property
    def capability(self) -> Capability:
        return Capability(
            write_with_if_not_exists=True,
            write_with_if_match=True,
            delete_with_if_match=True,
            read_with_if_match=True,
            read_with_version=self._store.versions,
            copy=True,
            copy_with_if_not_exists=True,
            copy_with_if_match=True,
            copy_source_pinned=True,
            copy_listed_up_to=self._config.threshold,
            copy_concurrent=True,
            copy_resumable=True,
            user_metadata=True,
            tags=True,
            versions=self._store.versions,
        )

    @property
    def chain(self) -> Chain:
        return self._chain

    def layered(self, chain: Chain) -> MemoryService:
        return MemoryService(self._config, self._store, chain)

    def location(self, path: str) -> str:
        return self._requests.location(path)

    def _key(self, path: str) -> str:
        return paths.join(self._config.root, paths.unicode_path(path))

    def _named(self, metadata: Metadata) -> Metadata:
        path = paths.relative(self._config.root, metadata.path)
        return replace(metadata, path=path, is_dir=path.endswith("/"))

    def identity(self, path: str) -> ObjectIdentity:
        return ObjectIdentity(self.location(path))

    def stat(self, path: str, *, version: str | None = None) -> Metadata:
        key = self._key(path)
        stored = self._requests.send("stat", path, lambda: self._store.get(key, version))
        return self._named(stored.metadata)

    def list(
        self, prefix: str, *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        after, last_folder = start_after, ""
        while True:
            page = self._page(prefix, after)
            for entry in page:
                after = entry.path
                folder = None if recursive else _folder(prefix, entry.path)
                if folder is None:
                    yield entry
                elif folder != last_folder and folder > start_after:
                    last_folder = folder
                    yield Metadata(path=folder, is_dir=True)
            if len(page) < self._config.page_size:
                return

    def list_versions(self, prefix: str) -> Iterator[Metadata]:
        start = self._key(prefix)
        found = self._requests.send("list", prefix, lambda: self._store.history(start))
        return (self._named(metadata) for metadata in found)

    def _page(self, prefix: str, after: str) -> Sequence[Metadata]:
        start, last = self._key(prefix), self._key(after) if after else ""
        most = self._config.page_size
        found = self._requests.send("list", prefix, lambda: self._store.page(start, last, most))
        return [self._named(metadata) for metadata in found]

    def read(self, path: str, options: ReadOptions) -> Iterator[bytes]:
        key, span = self._key(path), options.range

        def request() -> bytes:
            data = self._store.pinned(key, options.if_match, options.version).data
            end = None if span.length is None else span.offset + span.length
            return data[span.offset : end]

        data = self._requests.send("read", path, request)
        return (data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK))

    def write(self, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
        key, data = self._key(path), b"".join(chunks)
        template = Metadata(
            path=key,
            content_type=options.content_type,
            content_encoding=options.content_encoding,
            content_language=options.content_language,
            content_disposition=options.content_disposition,
            cache_control=options.cache_control,
            expires=options.expires,
            user=dict(options.user),
            tags=None if options.tags is None else dict(options.tags),
            storage_class=options.storage_class,
        )
        condition = Condition(options.if_not_exists, options.if_match)
        made = self._requests.send(
            "write", path, lambda: self._store.put(key, template, data, condition)
        )
        return self._named(made)

    def delete(self, path: str, options: DeleteOptions) -> None:
        key = self._key(path)
        self._requests.send(
            "delete", path, lambda: self._store.remove(key, options.if_match, options.version)
        )

    def copy(
        self, source: Metadata, target: str, options: CopyOptions, *, into: Service
    ) -> CopyDriver:
        verbs = self._verbs(source, target, options, into)
        config = self._config
        return driver_of(verbs, threshold=config.threshold, part_size=config.part_size)

    def resume(
        self,
        source: Metadata,
        target: str,
        options: CopyOptions,
        state: Mapping[str, Any],
        *,
        into: Service,
    ) -> CopyDriver:
        return resumed_driver(self._verbs(source, target, options, into), state)

    def _verbs(
        self, source: Metadata, target: str, options: CopyOptions, into: Service
    ) -> MemoryCopy:
        if not isinstance(into, MemoryService) or into._store is not self._store:
            raise Unsupported(
                f"memory cannot copy from {self.location(source.path)} to {into.location(target)}"
            )
        return MemoryCopy(
            requests=into._requests,
            source=source,
            source_key=self._key(source.path),
            target=target,
            target_key=into._key(target),
            options=options,
        )

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        start = self._key(prefix)
        found = self._requests.send("list", prefix, lambda: self._store.uploads(start))
        for upload, begun in found:
            path = paths.relative(self._config.root, begun.key)
            size = sum(len(data) for data in begun.parts.values())
            yield Leftover(self.location(path), "multipart upload", upload, begun.started, size)

    def remove_leftover(self, leftover: Leftover) -> None:
        self._requests.send("abort", leftover.location, lambda: self._store.drop(leftover.id))

    def close(self) -> None:
        """Nothing is held."""


def _folder(prefix: str, path: str) -> str | None:
    """The directory below a prefix that a path lies in; None where it lies in none."""
    rest = path[len(prefix) :]
    name, slash, _ = rest.partition("/")
    return prefix + name + "/" if slash else None
