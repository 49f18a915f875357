"""The verbs of local files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from calque.errors import Unsupported
from calque.operator.capability import Capability
from calque.operator.layers.chain import Call, Chain
from calque.operator.options import CopyOptions, DeleteOptions, ReadOptions, WriteOptions
from calque.operator.service import CopyDriver, Leftover, Service
from calque.operator.services.fs.aside import AsideFile, check_place, write_aside
from calque.operator.services.fs.attributes import read_attributes, set_attributes
from calque.operator.services.fs.config import FsConfig
from calque.operator.services.fs.copy import FileCopy, FileDriver
from calque.operator.services.fs.delete import delete
from calque.operator.services.fs.directories import create_dir, remove_empty, remove_folder
from calque.operator.services.fs.errors import map_errors
from calque.operator.services.fs.leftovers import list_leftovers, remove_leftover
from calque.operator.services.fs.links import check_link, make_link, read_link, stat_link
from calque.operator.services.fs.list import Skip, Tell, list_files, walk_files
from calque.operator.services.fs.parted_write import FsPartedWrite
from calque.operator.services.fs.read import read
from calque.operator.services.fs.rename import rename
from calque.operator.services.fs.resume import Unfinished
from calque.operator.services.fs.stat import stat
from calque.operator.services.fs.write import Send, write
from calque.values import Metadata, ObjectIdentity
from calque.values.file_attributes import FileAttributes

T = TypeVar("T")

CAPABILITY = Capability(
    write_with_if_not_exists=True,
    read_with_if_match=True,
    copy=True,
    copy_with_if_not_exists=True,
    copy_source_pinned=True,
    copy_resumable=True,
)


@dataclass(frozen=True)
class FsService:
    """Files beneath one directory. Holds nothing open, so it may be pickled and shared."""

    config: FsConfig
    chain: Chain = field(default_factory=Chain)

    @property
    def scheme(self) -> str:
        return "fs"

    @property
    def capability(self) -> Capability:
        return CAPABILITY

    def with_chain(self, chain: Chain) -> FsService:
        return replace(self, chain=chain)

    def location(self, path: str) -> str:
        slash = "/" if path.endswith("/") else ""
        return f"file://{self.config.root.absolute(self.config.root.directory_key(path))}{slash}"

    def identity(self, path: str) -> ObjectIdentity:
        return ObjectIdentity(self.location(path))

    def stat(self, path: str, *, version: str | None = None) -> Metadata:
        if version is not None:
            raise Unsupported(f"{path!r}: a file system keeps no versions")
        return self.chain.run(Call("stat", path), lambda _: stat(self.config.root, path))

    def list(
        self, prefix: str, *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        return self.chain.run(
            Call("list", prefix),
            lambda _: list_files(self.config.root, prefix, start_after, recursive),
        )

    def walk(
        self, prefix: str, *, start_after: str = "", skip: Skip, tell: Tell, links: bool = False
    ) -> Iterator[Metadata]:
        """Files as :meth:`list` shows them; ``tell`` gets what is none, ``skip`` spares folders."""
        return self.chain.run(
            Call("list", prefix),
            lambda _: walk_files(self.config.root, prefix, start_after, skip, tell, links=links),
        )

    def write_aside(
        self,
        path: str,
        data: bytes,
        options: WriteOptions,
        *,
        modified: int | None = None,
        mode: int | None = None,
        sparse: bool = False,
    ) -> AsideFile:
        """Write a file beside its name; many are synced at once before they take their names."""
        return self.chain.run(
            Call("write", path, slow=True),
            lambda _: write_aside(
                self.config.root, path, data, options, modified=modified, mode=mode, sparse=sparse
            ),
        )

    def check_place(self, path: str) -> None:
        """Raise where something else than a file has the name, or one has that of a folder."""
        check_place(self.config.root, path)

    def attributes(self, path: str) -> FileAttributes:
        """Time, mode and owners of a file."""
        return self.chain.run(Call("stat", path), lambda _: read_attributes(self.config.root, path))

    def read_link(self, path: str) -> bytes:
        """The text of a symbolic link."""
        return self.chain.run(Call("read", path), lambda _: read_link(self.config.root, path))

    def stat_link(self, path: str) -> Metadata:
        """A symbolic link itself, not what it leads to."""
        return self.chain.run(Call("stat", path), lambda _: stat_link(self.config.root, path))

    def make_link(
        self, path: str, text: bytes, *, modified: int | None = None, unsafe: bool = False
    ) -> Metadata:
        """A symbolic link; one that leads out of the root only where that is said to be wanted."""
        return self.chain.run(
            Call("write", path),
            lambda _: make_link(self.config.root, path, text, modified=modified, unsafe=unsafe),
        )

    def check_link(self, path: str, text: bytes, *, unsafe: bool = False) -> None:
        check_link(self.config.root, path, text, unsafe=unsafe)

    def set_attributes(self, path: str, wanted: FileAttributes) -> None:
        """Set them on a file that is there, as far as they are known."""
        self.chain.run(
            Call("write", path), lambda _: set_attributes(self.config.root, path, wanted)
        )

    def read(self, path: str, options: ReadOptions) -> Iterator[bytes]:
        return self.chain.run(Call("read", path), lambda _: read(self.config.root, path, options))

    def write(self, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
        send = self._sender(path)
        return write(self.config.root, path, chunks, options, self.config.durable, send)

    def write_in_parts(self, path: str, options: WriteOptions) -> FsPartedWrite:
        """A file filled part by part, beside its target, by one process or several in turn."""
        root, durable = self.config.root, self.config.durable
        return FsPartedWrite.of(root, path, options, durable, self._sender(path))

    def _sender(self, path: str) -> Send:
        """Passes requests of a write through the layers, by their verbs."""

        def send(verb: str, request: Callable[[], T], /) -> T:
            def map_and_request(_: Call) -> T:
                with map_errors(self.config.root.absolute(path)):
                    return request()

            call = Call(verb, path, idempotent=verb != "write_commit", slow=True)
            return self.chain.run(call, map_and_request)

        return send

    def delete(self, path: str, options: DeleteOptions) -> None:
        self.chain.run(
            Call("delete", path),
            lambda _: delete(self.config.root, path, options, durable=self.config.durable),
        )

    def create_dir(self, path: str) -> None:
        self.chain.run(
            Call("create_dir", path),
            lambda _: create_dir(self.config.root, path, durable=self.config.durable),
        )

    def remove_empty(self, path: str) -> None:
        self.chain.run(Call("remove_empty", path), lambda _: remove_empty(self.config.root, path))

    def remove_folder(self, path: str) -> bool:
        """Remove one directory if it is empty; whether it went."""
        return self.chain.run(
            Call("remove_folder", path), lambda _: remove_folder(self.config.root, path)
        )

    def copy(
        self, source: Metadata, target: str, options: CopyOptions, *, into: Service
    ) -> CopyDriver:
        return FileDriver(self._plan(source, target, options, into), self.chain)

    def resume(
        self,
        source: Metadata,
        target: str,
        options: CopyOptions,
        state: Mapping[str, Any],
        *,
        into: Service,
    ) -> CopyDriver:
        left = Unfinished.from_json(state, source.size)
        return FileDriver.resume(self._plan(source, target, options, into, left), self.chain, left)

    def _plan(
        self,
        source: Metadata,
        target: str,
        options: CopyOptions,
        into: Service,
        left: Unfinished | None = None,
    ) -> FileCopy:
        if not isinstance(into, FsService):
            raise Unsupported(
                f"fs cannot copy into {into.scheme} by itself",
                hint="Let the bytes pass through the client with stream=True (--stream)",
            )
        return FileCopy.plan(
            source, self.config.root, target, into.config.root, options, into.config.durable, left
        )

    def rename(
        self, source: Metadata, target: str, *, if_not_exists: bool = False, into: Service
    ) -> Metadata:
        """Move a pinned file in one moment; Unsupported across file systems."""
        if not isinstance(into, FsService):
            raise Unsupported(f"a file cannot be renamed to {into.location(target)}")
        return into.chain.run(
            Call("rename", target, idempotent=False),
            lambda _: rename(
                self.config.root,
                source,
                target,
                into=into.config.root,
                if_not_exists=if_not_exists,
                durable=into.config.durable,
            ),
        )

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        return self.chain.run(
            Call("leftovers", prefix), lambda _: list_leftovers(self.config.root, prefix)
        )

    def remove_leftover(self, leftover: Leftover) -> None:
        self.chain.run(
            Call("remove_leftover", leftover.id),
            lambda _: remove_leftover(self.config.root, leftover),
        )

    def close(self) -> None:
        """Nothing is held open."""
