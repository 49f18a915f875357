"""The verbs over one bucket of a project."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from calque.errors import IsSameFile, Unsupported
from calque.operator import paths
from calque.operator.capability import Capability
from calque.operator.layers.chain import Call, Chain
from calque.operator.options import CopyOptions, DeleteOptions, ReadOptions, WriteOptions
from calque.operator.service import CopyDriver, Leftover, Prepared, Service
from calque.store.project import Project
from calque.store.service.copy import StoreCopyDriver
from calque.store.service.errors import map_errors, name_existing
from calque.store.service.metadata import map_of_copy, to_map, to_metadata
from calque.store.service.parted_write import StorePartedWrite
from calque.store.uplink.objects import ObjectInfo, PrefixInfo
from calque.store.uplink.verbs.copy_object import Copy
from calque.store.uplink.verbs.delete_object import Deletion
from calque.store.uplink.verbs.move_object import move
from calque.store.uplink.verbs.move_prefix import PrefixMove
from calque.store.uplink.verbs.rewrap import Conditions, Transfer
from calque.values import Metadata, ObjectIdentity

T = TypeVar("T")

PROJECT_OF = ";project="
"""What follows the bucket in a location, before the project, which is percent-encoded."""

CAPABILITY = Capability(
    write_with_if_not_exists=True,
    write_with_if_match=True,
    delete_with_if_match=True,
    read_with_if_match=True,
    copy=True,
    copy_with_if_not_exists=True,
    copy_with_if_match=True,
    copy_source_pinned=True,
    copy_resumable=True,
    copy_resumable_for=24 * 3600.0,
    user_metadata=True,
    tags=True,
)


class StoreService:
    """One bucket of a project, from one root."""

    def __init__(self, project: Project, where: str, bucket: str, root: str, chain: Chain) -> None:
        self._project = project
        self._where = where if "://" in where or where.startswith("@") else os.path.abspath(where)
        self._bucket = bucket
        self._root = root
        self._chain = chain

    @property
    def scheme(self) -> str:
        return "calque"

    @property
    def capability(self) -> Capability:
        return CAPABILITY

    @property
    def chain(self) -> Chain:
        return self._chain

    def with_chain(self, chain: Chain) -> StoreService:
        return StoreService(self._project, self._where, self._bucket, self._root, chain)

    def location(self, path: str) -> str:
        """Names the project too: two projects may have the same bucket and key.

        It stands beside the bucket, so that locations sort as keys do and share their prefixes.
        """
        return f"calque://{self._bucket}{PROJECT_OF}{quote(self._where, safe='')}/{self._key(path)}"

    def identity(self, path: str) -> ObjectIdentity:
        return ObjectIdentity(self.location(path))

    @property
    def home(self) -> str | None:
        """The folder of a store in this process: no tree may be copied into it, or out of it into
        the store itself."""
        is_folder = "://" not in self._where and not self._where.startswith("@")
        return self._where if is_folder else None

    def stat(self, path: str, *, version: str | None = None) -> Metadata:
        _refuse_version(version)
        info = self._run(
            Call("stat", path), lambda: self._project.stat(self._bucket, self._key(path))
        )
        return to_metadata(info, path)

    def list(
        self, prefix: str, *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        entries = self._run(
            Call("list", prefix),
            lambda: self._project.list_objects(
                self._bucket,
                self._key(prefix),
                start_after=self._key(start_after) if start_after else "",
                recursive=recursive,
            ),
        )
        return (self._entry(entry) for entry in entries)

    def read(self, path: str, options: ReadOptions) -> Iterator[bytes]:
        _refuse_version(options.version)
        return iter(
            self._run(
                Call("read", path),
                lambda: self._project.download(
                    self._bucket,
                    self._key(path),
                    offset=options.range.offset,
                    length=options.range.length,
                    if_match=options.if_match,
                ),
            )
        )

    def write(self, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
        if options.storage_class is not None:
            raise Unsupported("the store has no storage classes")
        info = self._run(
            Call("write", path, idempotent=False, slow=True),
            lambda: self._project.upload(
                self._bucket,
                self._key(path),
                chunks,
                metadata=to_map(options),
                if_not_exists=options.if_not_exists,
                if_match=options.if_match,
            ),
        )
        return to_metadata(info, path)

    def write_in_parts(self, path: str, options: WriteOptions) -> StorePartedWrite:
        """An object uploaded in parts, by one process or several in turn."""
        if options.storage_class is not None:
            raise Unsupported("the store has no storage classes")
        where = self.location(path)
        return StorePartedWrite(
            self._project, self._bucket, self._key(path), path, where, options, self._chain
        )

    def delete(self, path: str, options: DeleteOptions) -> None:
        _refuse_version(options.version)
        deletion = Deletion(self._project.session, self._bucket, self._key(path), options.if_match)
        self._run(Call("delete", path), deletion.run)

    def copy(
        self, source: Metadata, target: str, options: CopyOptions, *, into: Service
    ) -> CopyDriver:
        return self._driver(source, target, options, into)

    def resume(
        self,
        source: Metadata,
        target: str,
        options: CopyOptions,
        state: Mapping[str, Any],
        *,
        into: Service,
    ) -> CopyDriver:
        driver = self._driver(source, target, options, into)
        driver.resume(state)
        return driver

    def rename(
        self, source: Metadata, target: str, *, if_not_exists: bool = False, into: Service
    ) -> Metadata:
        """Move the pinned object in one metadata transaction, to any bucket of the project."""
        conditions = Conditions(if_not_exists=if_not_exists, source_if_match=source.etag)
        there, transfer = self._transfer(source, target, None, conditions, into)
        if (transfer.old.bucket, transfer.old.key) == (transfer.new.bucket, transfer.new.key):
            raise IsSameFile(f"{there.location(target)} is the same object; nothing was done")
        moved = there._run(
            Call("rename", target, idempotent=False),
            lambda: move(self._project.session, transfer),
        )
        return to_metadata(moved, target)

    def move_prefix(
        self,
        prefix: str,
        target: str,
        *,
        into: Service,
        copy: bool = False,
        overwrite: bool = False,
        progress: Prepared | None = None,
    ) -> int:
        """Everything below a prefix in one metadata transaction, to any bucket of the project."""
        there = self._same_project(prefix, target, into)
        job = PrefixMove(
            self._project.session,
            self._bucket,
            self._key(prefix),
            there._bucket,
            there._key(target),
            move=not copy,
            overwrite=overwrite,
            into=there._project.session,
        )
        call = Call("move_prefix", target, idempotent=False, slow=True)
        with name_existing():
            return self._chain.run(call, lambda _: job.run(progress)).objects

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        """Uploads that are not committed, of whoever: the store keeps no other half-done work."""
        wanted = self._key(prefix)
        for pending in self._project.list_pending(self._bucket, wanted[: wanted.rfind("/") + 1]):
            if pending.key.startswith(wanted):
                yield Leftover(
                    location=self.location(paths.relative(self._root, pending.key)),
                    kind="multipart upload",
                    id=f"{pending.upload_id.hex()}:{pending.key}",
                    started=pending.begun,
                )

    def remove_leftover(self, leftover: Leftover) -> None:
        upload, _, key = leftover.id.partition(":")
        self._project.resume_multipart(self._bucket, key, bytes.fromhex(upload)).abort()

    def close(self) -> None:
        self._project.close()

    def _driver(
        self, source: Metadata, target: str, options: CopyOptions, into: Service
    ) -> StoreCopyDriver:
        conditions = Conditions(
            if_not_exists=options.if_not_exists,
            if_match=options.if_match,
            source_if_match=source.etag,
        )
        there, transfer = self._transfer(
            source, target, map_of_copy(source, options), conditions, into
        )
        copy = Copy(self._project.session, transfer)
        return StoreCopyDriver(copy, source, target, there.location(target), there._chain)

    def _transfer(
        self,
        source: Metadata,
        target: str,
        metadata: Mapping[str, str] | None,
        conditions: Conditions,
        into: Service,
    ) -> tuple[StoreService, Transfer]:
        """Within one project, whatever the bucket and the root."""
        there = self._same_project(source.path, target, into)
        old = self._project.session.locate(self._bucket, self._key(source.path))
        new = there._project.session.locate(there._bucket, there._key(target))
        return there, Transfer(old, new, conditions, metadata)

    def _same_project(self, source: str, target: str, into: Service) -> StoreService:
        if not isinstance(into, StoreService) or into._project_id != self._project_id:
            raise Unsupported(
                f"calque cannot go from {self.location(source)} "
                f"to {into.location(target)}: that is another project"
            )
        return into

    @property
    def _project_id(self) -> bytes:
        return self._project.session.limits.project_id

    def _key(self, path: str) -> str:
        return paths.join(self._root, paths.unicode_path(path))

    def _entry(self, entry: ObjectInfo | PrefixInfo) -> Metadata:
        path = paths.relative(self._root, entry.key)
        if isinstance(entry, PrefixInfo):
            return Metadata(path=path, is_dir=True)
        return to_metadata(entry, path)

    def _run(self, call: Call, request: Callable[[], T]) -> T:
        with map_errors(self.location(call.path)):
            return self._chain.run(call, lambda _: request())


def _refuse_version(version: str | None) -> None:
    if version is not None:
        raise Unsupported("the store keeps one version of an object")
