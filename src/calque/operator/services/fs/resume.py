"""What an unfinished copy left, and what must hold before it is continued."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Self

from calque.errors import CheckpointInvalid
from calque.operator.services.fs import syscalls
from calque.operator.services.fs.marker import is_temporary
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.stat import describe
from calque.operator.services.fs.temporary import Temporary
from calque.values import MIB, Metadata

DRIVER = "file"
_ANEW = "Copy anew; `calque sweep` removes what the old copy left"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The temporary file of a copy, which file that is, and how many bytes of it are right."""

    temporary: str
    inode: int
    born: int | None
    copied: int

    @classmethod
    def of(cls, temporary: Temporary, copied: int) -> Self:
        """What stands on the disk now."""
        inode = os.fstat(temporary.descriptor).st_ino
        return cls(temporary.name, inode, syscalls.birth(temporary.descriptor), copied)

    @classmethod
    def from_json(cls, state: Mapping[str, Any], size: int) -> Self | None:
        """Read :meth:`to_json`; None for a copy that had not begun. Trusts nothing."""
        if state.get("driver", DRIVER) != DRIVER:
            raise CheckpointInvalid("the checkpoint is not one of a file copy", hint=_ANEW)
        if "temporary" not in state:
            return None
        name, inode, copied = (state.get(key) for key in ("temporary", "inode", "copied"))
        if not (isinstance(name, str) and isinstance(inode, int) and isinstance(copied, int)):
            raise CheckpointInvalid("the checkpoint is not one of a file copy", hint=_ANEW)
        born = state.get("born")
        if not (born is None or isinstance(born, int)):
            raise CheckpointInvalid("the checkpoint is not one of a file copy", hint=_ANEW)
        if not is_temporary(name) or not 0 <= copied <= size:
            raise CheckpointInvalid("the checkpoint does not fit this file", hint=_ANEW)
        return cls(name, inode, born, copied)

    def to_json(self) -> dict[str, Any]:
        return {"driver": DRIVER, **asdict(self)}

    def _is_ours(self, descriptor: int) -> bool:
        same = os.fstat(descriptor).st_ino == self.inode
        return same and syscalls.birth(descriptor) == self.born

    def is_gone(self, root: Root, target: str) -> bool:
        """Whether the temporary file is no longer there."""
        directory = target.rpartition("/")[0]
        try:
            key = f"{directory}/{self.temporary}" if directory else self.temporary
            with root.hold_open(key, os.O_PATH | os.O_NOFOLLOW):
                return False
        except (FileNotFoundError, NotADirectoryError):
            return True

    def reopen(self, root: Root, target: str, source: int, durable: bool) -> Temporary:
        """The temporary file, held again.

        Its last bytes are compared with the source's: a file that somebody touched is refused.
        """
        try:
            temporary = Temporary.reopen(root, target, self.temporary, durable=durable)
        except FileNotFoundError as error:
            raise CheckpointInvalid(f"{self.temporary!r} is gone", hint=_ANEW) from error
        try:
            found = os.fstat(temporary.descriptor)
            begin = max(0, self.copied - MIB)
            if not self._is_ours(temporary.descriptor) or found.st_size < self.copied:
                raise CheckpointInvalid(f"{self.temporary!r} is another file now", hint=_ANEW)
            # The last bytes only: to compare all would read again what a resume is to spare.
            if not _is_equal(source, temporary.descriptor, begin, self.copied):
                raise CheckpointInvalid(f"{self.temporary!r} was changed since", hint=_ANEW)
        except BaseException:
            temporary.close()
            raise
        return temporary

    def discard(self, root: Root, target: str) -> None:
        """Remove the temporary file without going on with it."""
        with suppress(FileNotFoundError):
            Temporary.reopen(root, target, self.temporary, durable=False).discard()

    def check_committed(self, root: Root, target: str, source: int) -> Metadata:
        """The target, where this very copy became it: the same file, and byte for byte the source.

        A process may be killed after the rename and before it wrote down that it was done. Where
        the target is another's, the copy was aborted or swept: CheckpointInvalid.
        """
        try:
            with root.hold_open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as descriptor:
                found, size = os.fstat(descriptor), os.fstat(source).st_size
                if (
                    self._is_ours(descriptor)
                    and found.st_size == size
                    and _is_equal(source, descriptor, 0, size)
                ):
                    return describe(target, found)
        except OSError:
            pass  # nothing there that could be ours
        raise CheckpointInvalid(
            f"the unfinished copy to {root.absolute(target)!r} is gone: it was aborted or swept",
            hint="Copy anew",
        )


def _is_equal(one: int, other: int, begin: int, end: int) -> bool:
    while begin < end:
        count = min(MIB, end - begin)
        piece = os.pread(one, count, begin)
        if not piece or piece != os.pread(other, len(piece), begin):
            return False
        begin += len(piece)
    return True
