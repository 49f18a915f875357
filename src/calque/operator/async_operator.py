"""AsyncOperator: the Operator's verbs, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from datetime import timedelta
from io import BufferedReader
from itertools import islice
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from calque.operator.async_copier import AsyncCopier
from calque.operator.capability import Capability
from calque.operator.checkpoint import Checkpoint
from calque.operator.chunks import Data
from calque.operator.layers.chain import Layer
from calque.operator.operator import Operator
from calque.operator.options import CopyKeywords, CopyOptions, ReadConditions, WriteKeywords
from calque.operator.presign import PresignedRequest, PresignedVerb
from calque.operator.service import Leftover
from calque.operator.threads import Threads
from calque.values import Metadata

T = TypeVar("T")

_BATCH = 256
"""Entries or chunks that one hop to a thread brings back at most."""


class AsyncOperator:
    """An :class:`Operator` for event loops: the same code, run on at most ``threads`` threads."""

    def __init__(self, operator: Operator, *, threads: int = 32) -> None:
        self._operator = operator
        self._most = threads
        self._threads = Threads(threads)

    @classmethod
    def from_uri(
        cls,
        uri: str | PathLike[str],
        *,
        layers: tuple[Layer, ...] | None = None,
        **options: object,
    ) -> Self:
        """As :meth:`Operator.from_uri`."""
        return cls(Operator.from_uri(uri, layers=layers, **options))

    @property
    def operator(self) -> Operator:
        """The operator behind this face."""
        return self._operator

    @property
    def scheme(self) -> str:
        """The service's scheme."""
        return self._operator.scheme

    @property
    def capability(self) -> Capability:
        """What the service can do."""
        return self._operator.capability

    def location(self, path: str = "") -> str:
        """The canonical URI of a path."""
        return self._operator.location(path)

    def layer(self, layer: Layer) -> AsyncOperator:
        """The same service with one more layer around every request."""
        return AsyncOperator(self._operator.layer(layer), threads=self._most)

    async def stat(self, path: str, *, version: str | None = None) -> Metadata:
        """As :meth:`Operator.stat`."""
        return await self._threads.run(lambda: self._operator.stat(path, version=version))

    async def exists(self, path: str) -> bool:
        """As :meth:`Operator.exists`."""
        return await self._threads.run(lambda: self._operator.exists(path))

    async def list(
        self, prefix: str = "", *, start_after: str = "", recursive: bool = True
    ) -> AsyncIterator[Metadata]:
        """As :meth:`Operator.list`."""
        entries = await self._threads.run(
            lambda: self._operator.list(prefix, start_after=start_after, recursive=recursive)
        )
        async for entry in self._each(entries, _BATCH):
            yield entry

    async def read(
        self,
        path: str,
        *,
        offset: int = 0,
        length: int | None = None,
        if_match: str | None = None,
        version: str | None = None,
        **unless: Unpack[ReadConditions],
    ) -> bytes:
        """As :meth:`Operator.read`."""
        return await self._threads.run(
            lambda: self._operator.read(
                path, offset=offset, length=length, if_match=if_match, version=version, **unless
            )
        )

    async def read_stream(
        self,
        path: str,
        *,
        offset: int = 0,
        length: int | None = None,
        if_match: str | None = None,
        version: str | None = None,
        **unless: Unpack[ReadConditions],
    ) -> AsyncIterator[bytes]:
        """As :meth:`Operator.read_stream`."""
        chunks = await self._threads.run(
            lambda: self._operator.read_stream(
                path, offset=offset, length=length, if_match=if_match, version=version, **unless
            )
        )
        async for chunk in self._each(chunks, 1):
            yield chunk

    async def open(self, path: str, *, version: str | None = None) -> BufferedReader:
        """As :meth:`Operator.open`; the file itself is synchronous, for libraries on threads."""
        return await self._threads.run(lambda: self._operator.open(path, version=version))

    async def write(
        self, path: str, data: Data | AsyncIterable[bytes], **options: Unpack[WriteKeywords]
    ) -> Metadata:
        """As :meth:`Operator.write`; an asynchronous iterable of bytes may be written too.

        A write that is cancelled comes to an end of its own: the target is old or new.
        """
        if isinstance(data, AsyncIterable):
            return await self._threads.feed(
                data, lambda chunks: self._operator.write(path, chunks, **options)
            )
        return await self._threads.run(lambda: self._operator.write(path, data, **options))

    async def delete(
        self, path: str, *, if_match: str | None = None, version: str | None = None
    ) -> None:
        """As :meth:`Operator.delete`."""
        await self._threads.run(
            lambda: self._operator.delete(path, if_match=if_match, version=version)
        )

    async def list_versions(self, prefix: str = "") -> AsyncIterator[Metadata]:
        """As :meth:`Operator.list_versions`."""
        entries = await self._threads.run(lambda: self._operator.list_versions(prefix))
        async for entry in self._each(entries, _BATCH):
            yield entry

    async def create_dir(self, path: str) -> None:
        """As :meth:`Operator.create_dir`."""
        await self._threads.run(lambda: self._operator.create_dir(path))

    async def remove_all(self, path: str) -> int:
        """As :meth:`Operator.remove_all`."""
        return await self._threads.run(lambda: self._operator.remove_all(path))

    async def presign(
        self, verb: PresignedVerb, path: str, *, expires: timedelta | float = 3600.0
    ) -> PresignedRequest:
        """As :meth:`Operator.presign`; credentials may have to be fetched."""
        return await self._threads.run(lambda: self._operator.presign(verb, path, expires=expires))

    async def check(self) -> None:
        """As :meth:`Operator.check`."""
        await self._threads.run(self._operator.check)

    async def copy(
        self,
        source: str | Metadata,
        target: str,
        *,
        into: AsyncOperator | Operator | None = None,
        **options: Unpack[CopyKeywords],
    ) -> Metadata:
        """As :meth:`Operator.copy`; a cancelled task aborts the copy before it ends."""
        copier = await self.copier(source, target, into=into, **options)
        return await copier.run()

    async def copier(
        self,
        source: str | Metadata,
        target: str,
        *,
        into: AsyncOperator | Operator | None = None,
        **options: Unpack[CopyKeywords],
    ) -> AsyncCopier:
        """As :meth:`Operator.copier`."""
        other = _plain(into)
        copier = await self._threads.run(
            lambda: self._operator.copier(source, target, into=other, **options)
        )
        return AsyncCopier(copier, self._threads)

    async def copier_options(
        self,
        source: str | Metadata,
        target: str,
        options: CopyOptions,
        *,
        into: AsyncOperator | Operator | None = None,
    ) -> AsyncCopier:
        """As :meth:`Operator.copier_options`."""
        other = _plain(into)
        copier = await self._threads.run(
            lambda: self._operator.copier_options(source, target, options, into=other)
        )
        return AsyncCopier(copier, self._threads)

    async def rename(
        self,
        source: str,
        target: str,
        *,
        into: AsyncOperator | Operator | None = None,
        **options: Unpack[CopyKeywords],
    ) -> Metadata:
        """As :meth:`Operator.rename`; once begun it comes to an end, whatever is cancelled."""
        other = _plain(into)
        return await self._threads.run(
            lambda: self._operator.rename(source, target, into=other, **options)
        )

    async def resume(
        self,
        checkpoint: Checkpoint | str | bytes,
        *,
        into: AsyncOperator | Operator | None = None,
        **options: Unpack[CopyKeywords],
    ) -> AsyncCopier:
        """As :meth:`Operator.resume`."""
        other = _plain(into)
        copier = await self._threads.run(
            lambda: self._operator.resume(checkpoint, into=other, **options)
        )
        return AsyncCopier(copier, self._threads)

    async def leftovers(self, prefix: str = "") -> AsyncIterator[Leftover]:
        """As :meth:`Operator.leftovers`."""
        found = await self._threads.run(lambda: self._operator.leftovers(prefix))
        async for leftover in self._each(found, _BATCH):
            yield leftover

    async def remove_leftover(self, leftover: Leftover) -> None:
        """As :meth:`Operator.remove_leftover`."""
        await self._threads.run(lambda: self._operator.remove_leftover(leftover))

    async def close(self) -> None:
        """Give back connections and threads."""
        await self._threads.run(self._operator.close)
        await asyncio.to_thread(self._threads.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Async{self._operator!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return AsyncOperator, (self._operator,)

    async def _each(self, entries: Iterator[T], batch: int) -> AsyncIterator[T]:
        while found := await self._threads.run(lambda: tuple(islice(entries, batch))):
            for entry in found:
                yield entry


def _plain(into: AsyncOperator | Operator | None) -> Operator | None:
    return into.operator if isinstance(into, AsyncOperator) else into
