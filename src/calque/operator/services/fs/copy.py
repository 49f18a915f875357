"""A file copied to a file: the driver of local copies.

Order of a copy: pin the source → temporary file beside the target → clone, or move chunk after
chunk → check that the source is still the pinned one → mode → fsync → take the name → fsync the
directory. Until the name is taken nothing but a hidden temporary file can be seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from calque.errors import (
    Aborted,
    ConditionNotMatch,
    IntegrityError,
    InvalidInput,
    IsSameFile,
    Unsupported,
)
from calque.operator.layers.chain import Call, Chain
from calque.operator.options import CopyOptions
from calque.operator.services.fs import extents, syscalls
from calque.operator.services.fs.errors import map_errors, map_lookup_errors
from calque.operator.services.fs.marker import refuse_reserved
from calque.operator.services.fs.read import open_source
from calque.operator.services.fs.resume import DRIVER, Unfinished
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.stat import describe, stat, token
from calque.operator.services.fs.temporary import Temporary
from calque.operator.services.fs.write import check_conditions, target_status
from calque.values import MIB, Metadata

CHUNK = 8 * MIB
"""Small enough that the disk starts early and progress is smooth, large enough to cost nothing."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileCopy:
    """Which file goes where, and how: all that is known before anything is written."""

    source: Metadata
    source_root: Root
    target: str
    target_root: Root
    options: CopyOptions
    durable: bool

    @classmethod
    def plan(
        cls,
        source: Metadata,
        source_root: Root,
        target: str,
        target_root: Root,
        options: CopyOptions,
        durable: bool,
        left: Unfinished | None = None,
    ) -> FileCopy:
        """Check what can be checked without writing.

        Raises IsSameFile however the one file is spelled (symlink, hard link, letter case);
        Unsupported for ``if_match``; IsADirectory; ConditionNotMatch when the target is there
        and must not be. (The last is only for speed: what decides is the rename at the end.)
        """
        key = target_root.key(target)
        refuse_reserved(key)
        check_conditions(target, options.if_match)
        if options.source_version is not None:
            raise Unsupported(f"{source.path!r}: a file system keeps no versions")
        shown = target_root.absolute(key)
        with map_errors(shown):
            if (old := target_status(target_root, key)) is not None:
                _refuse_same(source_root, source_root.key(source.path), old, shown)
            if options.if_not_exists and left is None and _is_there(target_root, key):
                raise ConditionNotMatch(f"{shown!r} exists already; it was left as it is")
        if options.source_if_match not in (None, source.token):
            raise ConditionNotMatch(f"{source.path!r} is not the file that was asked for")
        return cls(source, source_root, key, target_root, options, durable)

    @property
    def shown(self) -> str:
        """The target as messages name it."""
        return self.target_root.absolute(self.target)


def _refuse_same(root: Root, source: str, old: os.stat_result, shown: str) -> None:
    with map_lookup_errors(root.absolute(source)), root.hold_open(source, os.O_PATH) as descriptor:
        same = os.path.samestat(os.fstat(descriptor), old)
    if same:
        ours = root.absolute(source)
        raise IsSameFile(f"{ours!r} and {shown!r} are one and the same file; nothing was done")


def _is_there(root: Root, key: str) -> bool:
    try:
        os.close(root.open(key, os.O_PATH | os.O_NOFOLLOW))
    except FileNotFoundError:
        return False
    return True


class FileDriver:
    """One file copy as a state machine; each chunk is one request through the layers."""

    def __init__(self, copy: FileCopy, chain: Chain, left: Unfinished | None = None) -> None:
        self._copy = copy
        self._chain = chain
        self._left = left
        self._begun = self._over = False
        self._offset = 0
        self._begun_to_write = 0
        self._source = -1
        self._sparse = False
        self._mover: extents.Mover | None = None
        self._temporary: Temporary | None = None
        self._result: Metadata | None = None

    @property
    def total(self) -> int:
        return self._copy.source.size

    @classmethod
    def resume(cls, copy: FileCopy, chain: Chain, left: Unfinished | None) -> FileDriver:
        """The driver of an earlier copy; where that came to its end, one that only reports it.

        Raises CheckpointInvalid where it was aborted or swept.
        """
        driver = cls(copy, chain, left)
        if left is not None:
            driver._request("stat", driver._check_done)
        return driver

    def _check_done(self) -> None:
        copy, left = self._copy, self._left
        assert left is not None
        if not left.is_gone(copy.target_root, copy.target):
            return
        source = open_source(copy.source_root, copy.source.path)
        try:
            self._result = left.check_committed(copy.target_root, copy.target, source)
        finally:
            os.close(source)
        self._offset = self.total

    def step(self) -> int | None:
        """One chunk. A resumed copy first reports what is there already, in one step."""
        if self._over and self._result is None:
            raise Aborted(f"the copy to {self._copy.shown!r} was stopped")
        if not self._begun:
            if self._result is None:
                self._request("copy_begin", self._begin)
            self._begun = True
            if self._offset:
                return self._offset
        if self._result is not None:
            return None
        if self._offset < self.total:
            moved = self._request("copy_chunk", self._advance)
            self._offset += moved
            return moved
        self._request("copy_commit", self._commit, idempotent=False)
        return None

    def abort(self) -> None:
        """Remove the temporary file; a target that was there stays as it was."""
        self._over = True
        self._close_source()
        if self._result is not None:
            return
        with map_errors(self._copy.shown):
            if self._temporary is not None:
                self._temporary.discard()
            elif self._left is not None:
                self._left.discard(self._copy.target_root, self._copy.target)
        self._left = None

    def pause(self) -> None:
        """Let go of the temporary file and leave it where it is, for :meth:`state` to name."""
        self.state()
        self._over = True
        self._close_source()
        if self._temporary is not None:
            self._temporary.close()

    def result(self) -> Metadata:
        if self._result is None:
            raise InvalidInput(f"the copy to {self._copy.shown!r} is not complete")
        return self._result

    def state(self) -> Mapping[str, Any]:
        """The temporary file and how much of it is surely on the disk.

        It is synced first: after a power cut the file must hold what the checkpoint says.
        """
        if self._temporary is not None and self._temporary.is_open:
            with map_errors(self._copy.shown):
                if self._copy.durable:
                    os.fdatasync(self._temporary.descriptor)
                self._left = Unfinished.of(self._temporary, self._offset)
        return self._left.to_json() if self._left else {"driver": DRIVER}

    def _request(self, verb: str, work: Callable[[], T], *, idempotent: bool = True) -> T:
        def request(_: Call) -> T:
            with map_errors(self._copy.shown):
                return work()

        call = Call(verb, self._copy.target, idempotent=idempotent, slow=True)
        return self._chain.run(call, request)

    def _begin(self) -> None:
        copy = self._copy
        self._release()
        # Opened once and read by this descriptor: another file that takes the name is not read.
        self._source = open_source(copy.source_root, copy.source.path)
        self._check_source()
        found = os.fstat(self._source)
        self._sparse = found.st_blocks * 512 < found.st_size
        if self._left is not None:
            self._continue(self._left)
            return
        self._temporary = Temporary.create(
            copy.target_root,
            copy.target,
            replace=not copy.options.if_not_exists,
            mode=0o600,
            durable=copy.durable,
        )
        if self.total and extents.clone(self._source, self._temporary.descriptor):
            self._offset = self.total

    def _continue(self, left: Unfinished) -> None:
        copy = self._copy
        self._temporary = left.reopen(copy.target_root, copy.target, self._source, copy.durable)
        self._offset = self._begun_to_write = left.copied

    def _advance(self) -> int:
        """Move one chunk, or leap over one hole; asked again it does the same again."""
        assert self._temporary is not None
        begin, end = self._offset, self.total
        if self._sparse:
            begin, end = extents.data_after(self._source, self._offset, self.total)
        if begin > self._offset:
            os.ftruncate(self._temporary.descriptor, begin)
            moved = begin - self._offset
        else:
            moved = self._move(begin, min(end - begin, self._copy.options.chunk or CHUNK))
        self._check_source()
        # The file ended before its size: it was cut while we read.
        if moved == 0:
            raise self._change_error()
        return moved

    def _move(self, offset: int, length: int) -> int:
        assert self._temporary is not None
        if self._mover is None:
            self._mover = extents.Mover(self._source, self._temporary.descriptor)
        moved = self._mover.move(offset, length)
        if self._copy.durable and offset + moved - self._begun_to_write >= CHUNK:
            length = offset + moved - self._begun_to_write
            syscalls.start_writeback(self._temporary.descriptor, self._begun_to_write, length)
            self._begun_to_write += length
        return moved

    def _check_source(self) -> None:
        """The open file must still be the pinned one."""
        if token(os.fstat(self._source)) != self._copy.source.token:
            self._check_source_path()
            raise self._change_error()

    def _check_source_path(self) -> None:
        """The name must still lead to the pinned file: it may be deleted or replaced by another."""
        copy = self._copy
        found = stat(copy.source_root, copy.source.path)  # NotFound when it is gone
        if found.token != copy.source.token:
            raise self._change_error()

    def _change_error(self) -> ConditionNotMatch:
        shown = self._copy.source_root.absolute(self._copy.source.path)
        return ConditionNotMatch(
            f"{shown!r} was changed while it was copied; no target was made",
            hint="Copy it again once nobody writes to it",
        )

    def _commit(self) -> None:
        assert self._temporary is not None
        copy, descriptor = self._copy, self._temporary.descriptor
        # One byte beyond: nothing else tells a file that grew while its last chunk was read.
        if os.pread(self._source, 1, self.total):
            raise self._change_error()  # it grew, or is one of /proc that hides its size
        self._check_source_path()
        written = os.fstat(descriptor).st_size
        if written != self.total:
            raise IntegrityError(f"{copy.shown!r}: {written} of {self.total} bytes were written")
        # only the permission bits: a set-user-id copy would run as somebody else
        os.fchmod(descriptor, os.fstat(self._source).st_mode & 0o777)
        # Noted before the rename: should its answer be lost, the copy is found by this.
        self._left = Unfinished.of(self._temporary, self.total)
        found = self._temporary.publish(copy.target, replace=not copy.options.if_not_exists)
        self._result = describe(copy.target, found)
        self._close_source()

    def _release(self) -> None:
        """Undo a begin whose answer was lost on its way through the layers."""
        self._close_source()
        if self._temporary is not None and self._left is None:
            self._temporary.discard()
        elif self._temporary is not None:
            self._temporary.close()

    def __del__(self) -> None:
        self._close_source()

    def _close_source(self) -> None:
        if self._source >= 0:
            os.close(self._source)
            self._source = -1
