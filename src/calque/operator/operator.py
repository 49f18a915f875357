"""Operator: one set of verbs over every storage service."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from io import BufferedReader
from os import PathLike
from types import TracebackType
from typing import Any, Self, Unpack

from calque.errors import InvalidInput, NotFound, Unsupported
from calque.operator import paths, registry
from calque.operator.capability import Capability
from calque.operator.checkpoint import Checkpoint
from calque.operator.chunks import Data, chunks_of
from calque.operator.copier import Copier
from calque.operator.copy import resume_copy, start_copy
from calque.operator.directories import create_dir, remove_all
from calque.operator.layers.chain import Chain, Layer
from calque.operator.layers.default import default_layers
from calque.operator.move import move_object, move_prefix
from calque.operator.options import (
    CopyKeywords,
    CopyOptions,
    DeleteOptions,
    ReadKeywords,
    WriteKeywords,
    WriteOptions,
    options_of,
)
from calque.operator.presign import PresignedRequest, PresignedVerb, presign
from calque.operator.read import open_reader, read_all, read_on, read_options
from calque.operator.registry import Opening
from calque.operator.service import (
    HasService,
    Leftover,
    Prepared,
    Service,
    Versioned,
    require,
    service_of,
)
from calque.operator.uri import root_of, text_of
from calque.values import Metadata


class Operator:
    """A storage service seen from one root; paths are relative to it.

    Safe to share between threads. It pickles as its URI, its options without secrets and its
    layers; credentials are found again where it is unpickled.
    """

    def __init__(self, service: Service, *, opening: Opening | None = None) -> None:
        self._service = service
        self._opening = opening

    @classmethod
    def from_uri(
        cls,
        uri: str | PathLike[str],
        *,
        layers: tuple[Layer, ...] | None = None,
        **options: object,
    ) -> Operator:
        """Open a service: ``s3://bucket/prefix``, ``gs://…``, ``az://…``, ``memory://``, a path.

        Options may stand in the URI's query too, secrets only here. ``credentials`` names a
        function (``package.module:function``) that returns more options where the operator is
        opened. Nothing is sent. ``layers`` stand outermost first; without them requests are
        repeated and timed out as :func:`calque.operator.layers.default_layers` says.
        """
        chosen = default_layers() if layers is None else layers
        text = root_of(uri)
        service = registry.build(text, options, Chain(chosen))
        return cls(service, opening=registry.opening_of(text, options, chosen))

    @classmethod
    def locate(
        cls,
        uri: str | PathLike[str],
        *,
        layers: tuple[Layer, ...] | None = None,
        **options: object,
    ) -> tuple[Operator, str]:
        """The operator of an object's container, and the object's path in it.

        ``s3://bucket/a/b`` gives the bucket and ``a/b``; ``./x``, ``x`` and ``file:///home/me/x``
        give the whole file system and the absolute path, so that any two local files share an
        operator. The path is taken literally: ``?`` and ``%`` in it are nothing special.
        """
        root, path = registry.split(text_of(uri))
        return cls.from_uri(root, layers=layers, **options), path

    @property
    def service(self) -> Service:
        """The service behind this operator."""
        return self._service

    @property
    def scheme(self) -> str:
        """The service's scheme: ``s3``, ``fs`` …"""
        return self._service.scheme

    @property
    def capability(self) -> Capability:
        """What the service can do."""
        return self._service.capability

    def location(self, path: str = "") -> str:
        """The canonical URI of a path, free of secrets."""
        return self._service.location(paths.valid_path(path))

    def layer(self, layer: Layer) -> Operator:
        """The same service with one more layer around every request; this operator is unchanged."""
        chain = self._service.chain.around(layer)
        opening = self._opening
        if opening is not None:
            opening = Opening(opening.uri, opening.options, chain.layers)
        return Operator(self._service.with_chain(chain), opening=opening)

    def stat(self, path: str, *, version: str | None = None) -> Metadata:
        """What is known of an object or directory (a path that ends in ``/``); else NotFound."""
        if not paths.is_directory(paths.valid_path(path)):
            return self._service.stat(path, version=version)
        # The root is looked at too, so that a bucket that is not there is told.
        if next(self._service.list(path), None) is not None or path == "":
            return Metadata(path=path, is_dir=True)
        return self._service.stat(path)

    def exists(self, path: str) -> bool:
        """Whether an object or directory is there."""
        try:
            self.stat(path)
        except NotFound:
            return False
        return True

    def list(
        self, prefix: str = "", *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        """Entries whose path starts with ``prefix``, in key order, after ``start_after``.

        Pages are fetched as they are needed. Not recursive: one level below the prefix, directories
        as ``is_dir`` entries whose path ends in ``/``.
        """
        paths.valid_path(prefix)
        paths.valid_path(start_after)
        return self._service.list(prefix, start_after=start_after, recursive=recursive)

    def list_versions(self, prefix: str = "") -> Iterator[Metadata]:
        """Every version of the objects under a prefix: keys in order, the newest version first.

        Where the service keeps none, or was not told that the bucket does: Unsupported.
        """
        service = self._service
        if not isinstance(service, Versioned):
            raise Unsupported(f"versions of {service.scheme} cannot be listed: calque has none")
        if not self.capability.versions:
            raise Unsupported(
                f"{service.location(prefix)} was opened as one that keeps no versions",
                hint="Where the bucket keeps them, open it with versions=true.",
            )
        return service.list_versions(paths.valid_path(prefix))

    def read(self, path: str, **options: Unpack[ReadKeywords]) -> bytes:
        """The bytes of an object, or ``length`` of them from ``offset``.

        ``if_match`` takes a :attr:`Metadata.pin`; other bytes are a ConditionNotMatch. So is an
        object that ``if_none_match`` names, or that is older or newer than ``if_modified_since``
        and ``if_unmodified_since`` allow: it is looked at first, and exactly what was looked at is
        read. ``version`` reads one that was replaced since.
        """
        return read_all(self._service, path, read_options(self._service, path, options))

    def read_stream(self, path: str, **options: Unpack[ReadKeywords]) -> Iterator[bytes]:
        """As :meth:`read`, in chunks as they arrive.

        A connection that breaks is opened again at the next byte, if the read is pinned.
        """
        return read_on(self._service, path, read_options(self._service, path, options))

    def open(self, path: str, *, version: str | None = None) -> BufferedReader:
        """An object as a seekable binary file; its bytes are pinned when it is opened."""
        found = self.stat(paths.file_path(path, "open"), version=version)
        return open_reader(self._service, found)

    def write(self, path: str, data: Data, **options: Unpack[WriteKeywords]) -> Metadata:
        """Write bytes, an iterable of bytes or a binary file as one object.

        The target is old or new, never half. ``if_not_exists`` and ``if_match`` are atomic, or
        Unsupported before anything is written.
        """
        paths.file_path(path, "write")
        chosen: WriteOptions = options_of(WriteOptions, options)
        can = self.capability
        require(
            self._service,
            not chosen.if_not_exists or can.write_with_if_not_exists,
            "write if_not_exists",
        )
        require(
            self._service, chosen.if_match is None or can.write_with_if_match, "write with if_match"
        )
        chunks, size = chunks_of(data)
        if size is not None:
            chosen = options_of(WriteOptions, {**options, "size_hint": size})
        return self._service.write(path, chunks, chosen)

    def delete(self, path: str, *, if_match: str | None = None, version: str | None = None) -> None:
        """Remove an object; one that is not there is no error."""
        paths.file_path(path, "delete")
        require(
            self._service,
            if_match is None or self.capability.delete_with_if_match,
            "delete with if_match",
        )
        self._need(version is None or self.capability.versions, "delete a version")
        self._service.delete(path, DeleteOptions(if_match=if_match, version=version))

    def create_dir(self, path: str) -> None:
        """Make a directory (a path that ends in ``/``); one that is there stays as it is.

        On a file system with everything above it; elsewhere as an empty object of that key.
        """
        create_dir(self._service, path)

    def remove_all(self, path: str) -> int:
        """Remove an object, and everything below the directory of that name; how many went.

        Not atomic: after an error some are gone, and calling again goes on.
        """
        return remove_all(self._service, path)

    def presign(
        self, verb: PresignedVerb, path: str, *, expires: timedelta | float = 3600.0
    ) -> PresignedRequest:
        """A request (``read``, ``stat``, ``write``, ``delete``) that anybody may send until then.

        Nothing is sent, and the object need not be there. Where the service has none: Unsupported.
        """
        return presign(self._service, verb, path, expires)

    def check(self) -> None:
        """Raise where the service cannot be reached, or the bucket is missing or not ours."""
        self.stat("")

    def copy(
        self,
        source: str | Metadata,
        target: str,
        *,
        into: HasService | None = None,
        **options: Unpack[CopyKeywords],
    ) -> Metadata:
        """Copy an object, here or into another operator, and return the target's metadata.

        Runs to completion; on any error the copy is aborted and the target stays as it was.
        """
        return self.copier(source, target, into=into, **options).run()

    def copier(
        self,
        source: str | Metadata,
        target: str,
        *,
        into: HasService | None = None,
        **options: Unpack[CopyKeywords],
    ) -> Copier:
        """The same copy, driven step by step by the caller. Nothing is written before a step.

        The source is looked at once, here, and pinned: other bytes are never copied. An entry of
        this operator's listing may stand for the source: exactly that object is copied, and where
        the service can (``Capability.copy_listed_up_to``) without looking at it again.
        """
        return self.copier_options(source, target, options_of(CopyOptions, options), into=into)

    def copier_options(
        self,
        source: str | Metadata,
        target: str,
        options: CopyOptions,
        *,
        into: HasService | None = None,
    ) -> Copier:
        """As :meth:`copier`, with options that were made before: checked once, used for many."""
        if not isinstance(options, CopyOptions):
            raise InvalidInput(
                f"options must be CopyOptions, not {type(options).__name__}",
                hint="Make them with CopyOptions(…), or give keywords to copier().",
            )
        return start_copy(
            self._service,
            source,
            self._service_of(into),
            target,
            options,
        )

    def rename(
        self,
        source: str,
        target: str,
        *,
        into: HasService | None = None,
        **options: Unpack[CopyKeywords],
    ) -> Metadata:
        """Move an object, here or into another operator, and return the target's metadata.

        One step where the service can (files of one file system, the store); else a copy and then
        a delete, and the source goes only when the target is seen to be complete and another
        object. On an error the source is there as it was.
        """
        chosen: CopyOptions = options_of(CopyOptions, options)
        if chosen.source_version is not None:
            raise InvalidInput("a move takes an object as it is now, not one of its versions")
        return move_object(
            self._service,
            source,
            self._service_of(into),
            target,
            chosen,
        )

    def copy_prefix(
        self,
        prefix: str,
        target: str,
        *,
        into: HasService | None = None,
        overwrite: bool = False,
        progress: Prepared | None = None,
    ) -> int:
        """Copy everything below a prefix in one moment, all or nothing; how many objects.

        Both end in ``/`` or are empty. ConditionNotMatch names an object that stands at a new
        name, unless ``overwrite``; FailedPrecondition where something below the prefix was written
        meanwhile. Unsupported where the service has no such step: only the store has it.
        """
        there = self._service_of(into)
        return move_prefix(self._service, prefix, there, target, True, overwrite, progress)

    def move_prefix(
        self,
        prefix: str,
        target: str,
        *,
        into: HasService | None = None,
        overwrite: bool = False,
        progress: Prepared | None = None,
    ) -> int:
        """Move everything below a prefix in one moment, as :meth:`copy_prefix` copies it."""
        there = self._service_of(into)
        return move_prefix(self._service, prefix, there, target, False, overwrite, progress)

    def resume(
        self,
        checkpoint: Checkpoint | str | bytes,
        *,
        into: HasService | None = None,
        **options: Unpack[CopyKeywords],
    ) -> Copier:
        """Continue the copy of a checkpoint; parts that the server holds are not copied again.

        The first step reports what was copied before. Options other than ``concurrent`` must be
        those the copy began with, or be left out. Raises CheckpointInvalid where the checkpoint
        is damaged, too old, or belongs to another source, target or service.
        """
        if not isinstance(checkpoint, Checkpoint):
            checkpoint = Checkpoint.from_json(checkpoint)
        begun = asdict(checkpoint.copy_options)
        chosen: CopyOptions = options_of(CopyOptions, {**begun, **options})
        return resume_copy(self._service, self._service_of(into), checkpoint, chosen)

    def _service_of(self, into: HasService | None) -> Service:
        return service_of(self if into is None else into)

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        """What killed copies have left under a prefix, found by our own marker."""
        return self._service.leftovers(paths.valid_path(prefix))

    def remove_leftover(self, leftover: Leftover) -> None:
        """Remove what a killed copy has left."""
        self._service.remove_leftover(leftover)

    def close(self) -> None:
        """Give back connections; operators made from this one by ``layer`` share them."""
        self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Operator({self._service.location('')!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._opening is None:
            raise Unsupported(
                f"{self!r} cannot be pickled: there is no URI to open it by elsewhere",
                hint="Open it with Operator.from_uri, a memory operator by a name.",
            )
        return _reopen, (self._opening,)

    def _need(self, can: bool, what: str) -> None:
        require(self._service, can, what)


def _reopen(opening: Opening) -> Operator:
    return Operator(opening.open(), opening=opening)
