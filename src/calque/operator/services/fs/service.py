"""The verbs of local files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from calque.errors import Unsupported
from calque.operator.capability import Capability
from calque.operator.layers.chain import Call, Chain
from calque.operator.options import DeleteOptions, ReadOptions, WriteOptions
from calque.operator.services.fs.config import FsConfig
from calque.operator.services.fs.delete import delete
from calque.operator.services.fs.list import listing
from calque.operator.services.fs.read import read
from calque.operator.services.fs.stat import stat
from calque.operator.services.fs.write import write
from calque.values import Metadata

CAPABILITY = Capability(
    write_with_if_not_exists=True,
    read_with_if_match=True,
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

    def layered(self, chain: Chain) -> FsService:
        return replace(self, chain=chain)

    def location(self, path: str) -> str:
        return f"fs://{self.config.root.absolute(path)}"

    def stat(self, path: str, *, version: str | None = None) -> Metadata:
        if version is not None:
            raise Unsupported(f"{path!r}: a file system keeps no versions")
        return self.chain.run(Call("stat", path), lambda _: stat(self.config.root, path))

    def list(
        self, prefix: str, *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        return self.chain.run(
            Call("list", prefix),
            lambda _: listing(self.config.root, prefix, start_after, recursive),
        )

    def read(self, path: str, options: ReadOptions) -> Iterator[bytes]:
        return self.chain.run(Call("read", path), lambda _: read(self.config.root, path, options))

    def write(self, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
        # not idempotent: the chunks can be taken only once
        return self.chain.run(
            Call("write", path, idempotent=False, slow=True),
            lambda _: write(self.config.root, path, chunks, options, durable=self.config.durable),
        )

    def delete(self, path: str, options: DeleteOptions) -> None:
        self.chain.run(
            Call("delete", path),
            lambda _: delete(self.config.root, path, options, durable=self.config.durable),
        )

    def close(self) -> None:
        """Nothing is held open."""
