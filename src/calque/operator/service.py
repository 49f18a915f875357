"""The seams of the operator: what a service supplies, what a copy driver is.

A service is one storage system seen from one root. It supplies verbs and nothing more: no queue,
no retry, no progress. Drivers (``drivers/``) own queue, order, commit and abort of a copy and call
the verbs through the layers (``layers/``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from calque.errors import CalqueError, InvalidInput, Unavailable, Unsupported
from calque.operator.capability import Capability
from calque.operator.drivers.verbs import Part
from calque.operator.layers.chain import Chain
from calque.operator.options import CopyOptions, DeleteOptions, ReadOptions, WriteOptions
from calque.values import ByteRange, Metadata, ObjectIdentity, PartPlan
from calque.values.file_attributes import FileAttributes


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
class Probe:
    """What was found out about a server: whether it is as calque takes it to be, and if not, the
    option (``name=value``) that says so."""

    name: str
    ok: bool
    found: str
    option: str = ""


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
class Tagging(Protocol):
    """What a service supplies besides, where a stat may leave out that there are tags."""

    def tags_to_carry(self, source: Metadata) -> Mapping[str, str]:
        """The tags of an object that is copied; raises where there may be some we cannot read."""


@runtime_checkable
class Probing(Protocol):
    """What a service supplies besides, where many servers speak its protocol, each its own way."""

    def probe(self, prefix: str) -> Iterator[Probe]:
        """Find out what the server does, on keys of its own below a prefix; none of them stays."""


@runtime_checkable
class Directories(Protocol):
    """What a service supplies besides, where directories exist by themselves."""

    def create_dir(self, path: str) -> None:
        """Make a directory and what is missing above it; one that is there is no error."""

    def remove_empty(self, path: str) -> None:
        """Remove a directory and those below it, as far as nothing is in them that counts."""

    def remove_folder(self, path: str) -> bool:
        """Remove one directory if it is empty; whether it went. None below it is touched."""


@runtime_checkable
class Walking(Protocol):
    """What a service supplies besides, where there is more than objects to be found."""

    def walk(
        self,
        prefix: str,
        *,
        start_after: str = "",
        skip: Callable[[str], bool],
        tell: Callable[[str, str], None],
        links: bool = False,
    ) -> Iterator[Metadata]:
        """All objects below a prefix, as a recursive listing has them; ``links`` among them.

        ``skip`` is asked for each folder (its path ends in ``/``), which is not opened if it is
        True. ``tell`` gets path and kind of what is no object: links out, sockets, empty folders.
        """


@runtime_checkable
class Linking(Protocol):
    """What a service supplies besides, where a name can stand for another."""

    def read_link(self, path: str) -> bytes: ...

    def stat_link(self, path: str) -> Metadata:
        """What is known of the link itself, wherever it leads."""

    def make_link(
        self, path: str, text: bytes, *, modified: int | None = None, unsafe: bool = False
    ) -> Metadata:
        """Make one in one moment; PathEscape where it would lead out and may not."""

    def check_link(self, path: str, text: bytes, *, unsafe: bool = False) -> None:
        """Raise what :meth:`make_link` would, as far as it can be known before."""


@runtime_checkable
class Attributed(Protocol):
    """What a service supplies besides, where objects have times, modes and owners of their own."""

    def attributes(self, path: str) -> FileAttributes: ...

    def set_attributes(self, path: str, wanted: FileAttributes) -> None:
        """Set what is known; the bytes stay as they are."""


class Aside(Protocol):
    """An object that has all its bytes and not yet its name: ended by publish or discard."""

    @property
    def device(self) -> int:
        """Whatever shares this is made durable by one sync."""

    def sync(self) -> None:
        """Make everything on its device durable."""

    def hold(self) -> Callable[[], None]:
        """The same sync for once more, after it was published; it must be called."""

    def publish(self) -> Metadata:
        """Give it its name in one moment; that is durable after the next sync."""

    def discard(self) -> None:
        """Remove it; one that was published stays."""


@runtime_checkable
class AsideWriting(Protocol):
    """What a service supplies besides, where durability costs a sync that many can share."""

    def write_aside(
        self,
        path: str,
        data: bytes,
        options: WriteOptions,
        *,
        modified: int | None = None,
        mode: int | None = None,
        sparse: bool = False,
    ) -> Aside:
        """Write a whole object beside its name; ``modified`` is in nanoseconds."""


@runtime_checkable
class Fetching(Protocol):
    """What a service supplies besides, where one reply brings an object with all its headers."""

    def fetch(
        self, path: str, options: ReadOptions, *, tags: bool = True
    ) -> tuple[Metadata, bytes]:
        """A small object, whole: what a stat tells of it, and its bytes, in one request.

        Tags, where they are wanted, are asked for only where there may be some; PermissionDenied
        where they may not be read.
        """


@runtime_checkable
class DeletingMany(Protocol):
    """What a service supplies besides, where one request deletes many objects."""

    @property
    def deletes_at_once(self) -> int:
        """How many; 0 where it cannot, or would not keep the condition of each."""

    def delete_many(self, entries: Sequence[Metadata]) -> Mapping[str, CalqueError]:
        """Delete objects, each if it still has its etag; errors of single ones by their paths.

        One that is not there is no error. Raises where the request as a whole has failed.
        """


class PartedWrite(Protocol):
    """An object written in parts; what is held outlives its process.

    The methods are those of :class:`calque.operator.drivers.verbs.MultipartVerbs`, with bytes of
    the caller's in the place of a range of a source.
    """

    @property
    def in_order(self) -> bool:
        """Whether each part must follow the one before it; else they come in any order."""

    def plan(self, size: int, wanted: int | None) -> PartPlan:
        """How an object of this size is cut."""

    def initiate(self) -> str: ...

    def put_part(self, upload: str, number: int, span: ByteRange, data: bytes) -> Part: ...

    def list_parts(
        self, upload: str, plan: PartPlan, known: Mapping[int, Part]
    ) -> Mapping[int, Part]:
        """What the target holds; NotFound when the upload is gone.

        ``known`` is what a checkpoint says of it, for targets that cannot tell by themselves.
        """

    def is_left(self, upload: str) -> bool:
        """Whether an abort has left something that another abort would take."""

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata: ...

    def find_committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None: ...

    def abort(self, upload: str) -> None: ...

    def release(self) -> None:
        """Let go of what this process holds open; the parts stay."""


@runtime_checkable
class ReadingBack(Protocol):
    """What a parted write supplies besides, where its bytes can be read before the commit."""

    def read_back(self) -> Iterator[bytes]:
        """All bytes, from the first part to the last."""


@runtime_checkable
class PartedWriting(Protocol):
    """What a service supplies besides, where parts of a write can be kept and gone on with."""

    def write_in_parts(self, path: str, options: WriteOptions) -> PartedWrite:
        """The write of a large object, of which nothing is sent yet.

        Raises Unsupported where a condition would not be kept by its commit.
        """


@runtime_checkable
class Presigning(Protocol):
    """What a service supplies besides, where a request can be signed for others to send."""

    def presign(self, method: str, path: str, seconds: int) -> tuple[str, Mapping[str, str]]:
        """The URL of a signed request, and the headers that must go with it; nothing is sent."""


@runtime_checkable
class Versioned(Protocol):
    """What a service supplies besides, where old versions of objects can be listed."""

    def list_versions(self, prefix: str) -> Iterator[Metadata]:
        """Every version under a prefix: keys in order, each with its newest version first."""


@runtime_checkable
class Housed(Protocol):
    """A service that keeps what it holds in a folder of this machine."""

    @property
    def home(self) -> str | None:
        """The folder; None where it is elsewhere."""


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
