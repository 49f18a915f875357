"""A file written in parts beside its target, which another process can go on with.

The parts lie in one temporary file, each at its own place. A file system cannot tell which of them
are there, so the checkpoint does, and each is read again and held against its checksum before it is
kept: whatever a crash or a power cut has lost of it is copied again.
"""

from __future__ import annotations

import os
import stat as modes
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from calque.errors import CheckpointInvalid, IntegrityError, InvalidInput, NotFound
from calque.operator.drivers.verbs import Part
from calque.operator.options import WriteOptions
from calque.operator.services.fs import syscalls
from calque.operator.services.fs.errors import map_errors
from calque.operator.services.fs.marker import is_temporary, refuse_reserved
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.stat import describe
from calque.operator.services.fs.temporary import Temporary
from calque.operator.services.fs.write import Send, check_conditions, target_status, write_at
from calque.values import MIB, ByteRange, Metadata, PartLimits, PartPlan

PART = 8 * MIB
LIMITS = PartLimits(smallest=1, largest=2**62, most=10_000)
"""So many parts that a checkpoint, which names each of them, stays small."""
_NEW_MODE = 0o666


@dataclass(frozen=True, slots=True)
class _Upload:
    """Which temporary file it is: by name, and by what no other file of that name would have."""

    name: str
    inode: int
    born: int | None

    @classmethod
    def of(cls, temporary: Temporary) -> _Upload:
        inode = os.fstat(temporary.descriptor).st_ino
        return cls(temporary.name, inode, syscalls.birth(temporary.descriptor))

    @classmethod
    def parse(cls, text: str) -> _Upload:
        """Read :meth:`__str__`; trusts nothing."""
        inode, _, rest = text.partition(":")
        born, _, name = rest.partition(":")
        if not (is_temporary(name) and inode.isdecimal() and (born.isdecimal() or not born)):
            raise CheckpointInvalid(
                "the checkpoint does not name a temporary file of ours", hint="Copy anew."
            )
        return cls(name, int(inode), int(born) if born else None)

    def __str__(self) -> str:
        return f"{self.inode}:{'' if self.born is None else self.born}:{self.name}"

    def is_file(self, descriptor: int) -> bool:
        same = os.fstat(descriptor).st_ino == self.inode
        return same and syscalls.birth(descriptor) == self.born


@dataclass(slots=True)
class FsPartedWrite:
    """The verbs of one such write; each passes the layers by ``send``."""

    root: Root
    key: str
    options: WriteOptions
    durable: bool
    send: Send
    _temporary: Temporary | None = None
    _plan: PartPlan | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, root: Root, path: str, options: WriteOptions, durable: bool, send: Send
    ) -> FsPartedWrite:
        """Refused where the path cannot be written to, or a condition not be kept."""
        key = root.key(path)
        refuse_reserved(key)
        check_conditions(path, options.if_match)
        with map_errors(root.absolute(key)):
            target_status(root, key)
        return cls(root, key, options, durable, send)

    @property
    def in_order(self) -> bool:
        return False

    @property
    def _shown(self) -> str:
        return self.root.absolute(self.key)

    def plan(self, size: int, wanted: int | None) -> PartPlan:
        try:
            self._plan = PartPlan.make(size, wanted or PART, LIMITS)
        except ValueError as error:
            raise InvalidInput(f"{self._shown!r}: {error}") from error
        return self._plan

    def initiate(self) -> str:
        return self.send("write_begin", self._begin)

    def _begin(self) -> str:
        if self._temporary is not None:
            self._temporary.discard()  # of an attempt whose answer was lost
        old = target_status(self.root, self.key)
        self._temporary = Temporary.create(
            self.root,
            self.key,
            replace=not self.options.if_not_exists,
            # Who may not read the file that is replaced may not read what will replace it.
            mode=_NEW_MODE if old is None else modes.S_IMODE(old.st_mode) & _NEW_MODE,
            durable=self.durable,
        )
        return str(_Upload.of(self._temporary))

    def put_part(self, upload: str, number: int, span: ByteRange, data: bytes) -> Part:
        descriptor = self._held.descriptor
        self.send("write_part", lambda: write_at(descriptor, data, span.offset))
        return Part(number, _checksum(data), len(data))

    @property
    def _held(self) -> Temporary:
        if self._temporary is None or not self._temporary.is_open:
            raise InvalidInput(f"the write of {self._shown!r} is over")
        return self._temporary

    def list_parts(
        self, upload: str, plan: PartPlan, known: Mapping[int, Part]
    ) -> Mapping[int, Part]:
        """Of the known parts those that are on the disk as they were written."""
        self._plan = plan
        self.send("list_parts", lambda: self._reopen(_Upload.parse(upload)))
        descriptor = self._held.descriptor
        return {
            number: part
            for number, part in known.items()
            if 1 <= number <= plan.count and _is_whole(descriptor, plan.range_of(number), part)
        }

    def _reopen(self, upload: _Upload) -> None:
        if self._temporary is not None:
            self._temporary.close()
        found = Temporary.reopen(self.root, self.key, upload.name, durable=self.durable)
        if not upload.is_file(found.descriptor):
            found.close()
            raise NotFound(f"{upload.name!r} is another file now")
        self._temporary = found

    def is_left(self, upload: str) -> bool:
        return False

    def read_back(self) -> Iterator[bytes]:
        """The bytes as they lie in the temporary file."""
        descriptor, offset = self._held.descriptor, 0
        with map_errors(self._shown):
            while chunk := os.pread(descriptor, MIB, offset):
                yield chunk
                offset += len(chunk)

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        return self.send("write_commit", lambda: self._publish(sum(part.size for part in parts)))

    def _publish(self, size: int) -> Metadata:
        temporary = self._held
        written = os.fstat(temporary.descriptor).st_size
        if written != size:
            raise IntegrityError(f"{self._shown!r}: {written} of {size} bytes were written")
        if (old := target_status(self.root, self.key)) is not None:
            # Before it takes the name: not for a moment may it be read by wider rights.
            os.fchmod(temporary.descriptor, modes.S_IMODE(old.st_mode))
        found = temporary.publish(self.key, replace=not self.options.if_not_exists)
        return describe(self.key, found)

    def find_committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        """The target, if it is the very file that the parts were written to."""
        made, plan = _Upload.parse(upload), self._plan
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with self.root.hold_open(self.key, flags) as descriptor:
                found = os.fstat(descriptor)
                if plan is None or found.st_size != plan.size or not made.is_file(descriptor):
                    return None
                spans = ((plan.range_of(part.number), part) for part in parts)
                if not all(_is_whole(descriptor, *each) for each in spans):
                    return None
                return describe(self.key, found)
        except (OSError, ValueError):
            return None  # nothing there that could be ours

    def abort(self, upload: str) -> None:
        """Remove the temporary file; one that is gone is no error."""
        with map_errors(self._shown):
            if self._temporary is not None and self._temporary.is_open:
                self._temporary.discard()

    def release(self) -> None:
        if self._temporary is not None:
            self._temporary.close()


def _checksum(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"


def _is_whole(descriptor: int, span: ByteRange, part: Part) -> bool:
    """Whether the bytes of a part are as it was written."""
    assert span.length is not None
    offset, end, crc = span.offset, span.offset + span.length, 0
    while offset < end:
        piece = os.pread(descriptor, min(MIB, end - offset), offset)
        if not piece:
            return False
        crc, offset = zlib.crc32(piece, crc), offset + len(piece)
    return part.size == span.length and f"{crc:08x}" == part.etag
