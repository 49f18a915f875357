"""The seams of the operator: what a service supplies, what a copy driver is.

A service is one storage system seen from one root. It supplies verbs and nothing more: no queue,
no retry, no progress. Drivers (``drivers/``) own queue, order, commit and abort of a copy and call
the verbs through the layers (``layers/``). What only some services have is in ``abilities.py``, and
is had from here like the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from calque.errors import InvalidInput, Unavailable, Unsupported
from calque.operator.capability import Capability
from calque.operator.layers.chain import Chain
from calque.operator.optional_protocols import (
    Aside,
    AsideWriting,
    Attributed,
    DeletingMany,
    Directories,
    Fetching,
    Housed,
    Linking,
    PartedWrite,
    PartedWriting,
    Presigning,
    Probe,
    Probing,
    ReadingBack,
    Tagging,
    Versioned,
    Walking,
)
from calque.operator.options import CopyOptions, DeleteOptions, ReadOptions, WriteOptions
from calque.values import Metadata, ObjectIdentity

__all__ = [
    "Aside",
    "AsideWriting",
    "Attributed",
    "Bucket",
    "CopyDriver",
    "DeletingMany",
    "Directories",
    "Fetching",
    "HasService",
    "Housed",
    "Interruptible",
    "Leftover",
    "Linking",
    "PartedWrite",
    "PartedWriting",
    "PrefixMoving",
    "Prepared",
    "Presigning",
    "Probe",
    "Probing",
    "ReadingBack",
    "Renaming",
    "Service",
    "Tagging",
    "Versioned",
    "Walking",
    "WriteAgain",
    "require",
    "service_of",
]


class WriteAgain(Unavailable):
    """A write was refused, nothing was made, and the service has learnt how to do it: the same
    bytes once more will pass. Raised where the chunks are used up and only the caller has more."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """What a killed copy left behind: named, dated, and removable by its service."""

    location: str
    kind: str
    """``multipart upload``, ``temporary file`` or ``uncommitted blocks``."""
    id: str
    started: datetime | None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, or container, that an account has."""

    name: str
    created: datetime | None = None


class CopyDriver(Protocol):
    """One copy as a state machine. Made without writing anything; ``step`` does the work."""

    @property
    def total(self) -> int:
        """The bytes that steps will sum up to."""

    def step(self) -> int | None:
        """Advance; the bytes copied by this step, or None once the target is committed."""

    def abort(self) -> None:
        """Stop in-flight work, wait for it, and remove what was left. Safe to call twice."""

    def result(self) -> Metadata:
        """The target's metadata; valid after ``step`` returned None."""

    def pause(self) -> None:
        """Stop in-flight work and wait for it, leaving what the server holds for a resume.

        Asked only where ``Capability.copy_resumable`` is declared.
        """

    def state(self) -> Mapping[str, Any]:
        """The private payload of a checkpoint: JSON values, no secret, no signed URL.

        A part plan stands under ``plan``; the envelope shows it outside the payload.
        """


@runtime_checkable
class Interruptible(Protocol):
    """What a driver may supply besides, where a step may wait long for its peer."""

    def interrupt(self) -> None:
        """Let the step under way, on whatever thread, end soon by raising Aborted."""


class Service(Protocol):
    """One storage system from one root; paths are relative to it and ``/``-separated."""

    @property
    def scheme(self) -> str: ...

    @property
    def capability(self) -> Capability: ...

    @property
    def chain(self) -> Chain:
        """The layers that every request of this service passes through."""

    def with_chain(self, chain: Chain) -> Service:
        """The same service over the same connections, its requests passing through ``chain``."""

    def location(self, path: str) -> str:
        """The canonical URI of a path: equal for two spellings of one object, free of secrets."""

    def identity(self, path: str) -> ObjectIdentity:
        """Which object a path names among those of all servers: nothing is sent to find out."""

    def stat(self, path: str, *, version: str | None = None) -> Metadata: ...

    def list(
        self, prefix: str, *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        """Entries whose path starts with ``prefix`` (a plain string, on every service), in key
        order, strictly after ``start_after``; pages are fetched as they are needed.

        Recursive: objects only. Not recursive: what follows the prefix up to the next ``/``, where
        several keys share that they appear once as an ``is_dir`` entry whose path ends in ``/``.
        An object whose key ends in ``/`` (a folder marker) is an ``is_dir`` entry too.
        """

    def read(self, path: str, options: ReadOptions) -> Iterator[bytes]:
        """The bytes of a range as they arrive, cut like a slice: past the end there is nothing.

        A missing object or a failed condition is raised at the first chunk, at the latest.
        """

    def write(self, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
        """Write all chunks as one object; the target is old or new, never half.

        An error out of ``chunks`` passes through, and nothing of this write is left behind.
        """

    def delete(self, path: str, options: DeleteOptions) -> None:
        """Remove the object; one that is not there is no error."""

    def copy(
        self, source: Metadata, target: str, options: CopyOptions, *, into: Service
    ) -> CopyDriver:
        """A driver that copies ``source`` (of this service) to ``target`` in ``into`` server-side.

        Raises Unsupported, before any write, where the two cannot copy between themselves or a
        condition cannot be kept atomically.
        """

    def resume(
        self,
        source: Metadata,
        target: str,
        options: CopyOptions,
        state: Mapping[str, Any],
        *,
        into: Service,
    ) -> CopyDriver:
        """The driver of an earlier copy, rebuilt from :meth:`CopyDriver.state`.

        Raises CheckpointInvalid where what the state names is gone and is not the target.
        """

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        """What killed copies left under a prefix, found by our own marker."""

    def remove_leftover(self, leftover: Leftover) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class Renaming(Protocol):
    """What a service may supply besides: a move that is one step."""

    def rename(
        self, source: Metadata, target: str, *, if_not_exists: bool = False, into: Service
    ) -> Metadata:
        """Move the pinned object to ``target`` in ``into``, in one moment; the target's metadata.

        ``into`` may be another root. Raises Unsupported, with nothing done, where it cannot.
        """


Prepared = Callable[[int, int], None]
"""Told of a prefix under way: how many objects are prepared by now, and their bytes."""


@runtime_checkable
class PrefixMoving(Protocol):
    """What a service may supply besides: all below a prefix copied or moved in one moment."""

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
        """Move (or copy) everything below ``prefix`` at once; how many objects there were.

        ``into`` may be another root. Raises Unsupported, with nothing done, where it cannot.
        """


@runtime_checkable
class HasService(Protocol):
    """What a copy may go into: an operator, or the asynchronous face of one."""

    @property
    def service(self) -> Service: ...


def service_of(into: HasService) -> Service:
    """The service behind an operator; InvalidInput where it is none."""
    if not isinstance(into, HasService):
        raise InvalidInput(
            f"into must be an Operator, not {type(into).__name__}",
            hint="Open it first: Operator.from_uri(…).",
        )
    return into.service


def require(service: Service, can: bool, what: str) -> None:
    """Raise Unsupported where a service lacks what a call needs."""
    if not can:
        raise Unsupported(f"{service.scheme} cannot {what}")
