"""AsyncOperator: the Operator's verbs, awaited.

No verb is written twice. What each takes and promises stands in :class:`Operator`; the table in
:class:`AsyncOperator` says in which of four ways it is awaited: one answer, many, a copier, or a
copy that is run to its end. Signatures and docstrings are those of the synchronous verbs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterator
from functools import WRAPPER_ASSIGNMENTS, wraps
from itertools import islice
from os import PathLike
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from calque.operator.async_copier import AsyncCopier
from calque.operator.capability import Capability
from calque.operator.chunks import Data
from calque.operator.copier import Copier
from calque.operator.layers.chain import Layer
from calque.operator.operator import Operator
from calque.operator.options import WriteKeywords
from calque.operator.service import Service
from calque.operator.threads import Threads
from calque.values import Metadata

P = ParamSpec("P")
T = TypeVar("T")

_BATCH = 256
"""Entries that one hop to a thread brings back at most: a hop costs more than an entry."""
_COPIED = tuple(name for name in WRAPPER_ASSIGNMENTS if name not in ("__module__", "__qualname__"))
"""What a verb here has of its synchronous one: its name, its words and its annotations."""


def _answer(
    verb: Callable[Concatenate[Operator, P], T],
) -> Callable[Concatenate[AsyncOperator, P], Coroutine[Any, Any, T]]:
    """A verb with one answer, called on a thread.

    A task that is cancelled stops waiting; the call itself comes to its end.
    """

    @wraps(verb, assigned=_COPIED)
    async def call(face: AsyncOperator, /, *args: P.args, **keywords: P.kwargs) -> T:
        return await face._threads.run(lambda: verb(face.operator, *args, **keywords))

    return call


def _iterate(
    verb: Callable[Concatenate[Operator, P], Iterator[T]], batch: int
) -> Callable[Concatenate[AsyncOperator, P], AsyncIterator[T]]:
    """A verb whose answers come one by one; a thread fetches up to ``batch`` of them at a time."""

    @wraps(verb, assigned=_COPIED)
    async def call(face: AsyncOperator, /, *args: P.args, **keywords: P.kwargs) -> AsyncIterator[T]:
        threads = face._threads
        entries = await threads.run(lambda: verb(face.operator, *args, **keywords))
        while found := await threads.run(lambda: tuple(islice(entries, batch))):
            for entry in found:
                yield entry

    return call


def _open_copier(
    verb: Callable[Concatenate[Operator, P], Copier],
) -> Callable[Concatenate[AsyncOperator, P], Coroutine[Any, Any, AsyncCopier]]:
    """A verb that begins a copy, which the caller then drives."""

    @wraps(verb, assigned=_COPIED)
    async def call(face: AsyncOperator, /, *args: P.args, **keywords: P.kwargs) -> AsyncCopier:
        copier = await face._threads.run(lambda: verb(face.operator, *args, **keywords))
        return AsyncCopier(copier, face._threads)

    return call


def _run_copier(
    verb: Callable[Concatenate[Operator, P], Copier],
) -> Callable[Concatenate[AsyncOperator, P], Coroutine[Any, Any, Metadata]]:
    """A copy from its beginning to its end; a cancelled task aborts it before the task ends."""
    begin = _open_copier(verb)

    @wraps(Operator.copy, assigned=_COPIED)
    async def call(face: AsyncOperator, /, *args: P.args, **keywords: P.kwargs) -> Metadata:
        copier = await begin(face, *args, **keywords)
        return await copier.run()

    return call


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
    def service(self) -> Service:
        """The service behind the operator: what makes this face a place to copy into."""
        return self._operator.service

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

    check = _answer(Operator.check)
    stat = _answer(Operator.stat)
    exists = _answer(Operator.exists)
    list = _iterate(Operator.list, _BATCH)
    list_versions = _iterate(Operator.list_versions, _BATCH)
    read = _answer(Operator.read)
    # A chunk is large and the reader may stop after any: none is fetched before it is asked for.
    read_stream = _iterate(Operator.read_stream, 1)
    # The file that comes back is synchronous, for libraries that run on threads.
    open = _answer(Operator.open)
    delete = _answer(Operator.delete)
    create_dir = _answer(Operator.create_dir)
    remove_all = _answer(Operator.remove_all)
    # Nothing is sent, but credentials may have to be fetched.
    presign = _answer(Operator.presign)
    copy = _run_copier(Operator.copier)
    copier = _open_copier(Operator.copier)
    copier_options = _open_copier(Operator.copier_options)
    rename = _answer(Operator.rename)
    copy_prefix = _answer(Operator.copy_prefix)
    move_prefix = _answer(Operator.move_prefix)
    resume = _open_copier(Operator.resume)
    leftovers = _iterate(Operator.leftovers, _BATCH)
    remove_leftover = _answer(Operator.remove_leftover)

    async def write(
        self, path: str, data: Data | AsyncIterable[bytes], **options: Unpack[WriteKeywords]
    ) -> Metadata:
        """As :meth:`Operator.write`; an asynchronous iterable of bytes may be written too.

        A write that is cancelled comes to an end of its own: the target is old or new.
        """
        if isinstance(data, AsyncIterable):
            return await self._threads.pull(
                data, lambda chunks: self._operator.write(path, chunks, **options)
            )
        return await self._threads.run(lambda: self._operator.write(path, data, **options))

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
