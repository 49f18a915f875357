"""Temporary files: how an object is written aside and takes its name in one moment."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress

from calque.errors import ConditionNotMatch, InvalidInput, Unsupported
from calque.operator.services.fs import syscalls
from calque.operator.services.fs.marker import change_name, is_temporary, new_name
from calque.operator.services.fs.root import Root

_NO_SUCH_CALL = (errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP)
"""How kernels and file systems say that they do not know a call; each has a word of its own."""


class Temporary:
    """A file beside its target, locked while we live so that no sweep takes it from us.

    Made by :meth:`create` or :meth:`reopen`; ended by :meth:`publish` or :meth:`discard`, and
    closed in either case. After :meth:`close` alone the file stays, to be resumed or swept.
    """

    def __init__(self, directory: int, name: str, descriptor: int, durable: bool) -> None:
        self.name = name
        self.descriptor = descriptor
        self._directory = directory
        self._durable = durable

    @classmethod
    def create(
        cls, root: Root, target: str, *, replace: bool, mode: int, durable: bool
    ) -> Temporary:
        """An empty temporary file for the key ``target``, whose parents are made if missing.

        Raises Unsupported, with nothing written, where the file system cannot publish without
        replacing and ``replace`` is False.
        """
        directory = root.open_directory(target.rpartition("/")[0], make=True, durable=durable)
        try:
            name, descriptor = _create(directory, target.rpartition("/")[2], mode)
        except BaseException:
            os.close(directory)
            raise
        made = cls(directory, name, descriptor, durable)
        try:
            # Locked before anything is written, so that a sweep never takes a file that is in use.
            made._lock()
            if not replace:
                made._check_no_replace()
        except BaseException:
            made.discard()
            raise
        return made

    @classmethod
    def reopen(cls, root: Root, target: str, name: str, *, durable: bool) -> Temporary:
        """The temporary file of an earlier process; FileNotFoundError when it is gone.

        Raises ConditionNotMatch while another process holds it.
        """
        if not is_temporary(name):
            raise InvalidInput(f"{name!r} is no temporary file of calque")
        directory = root.open_directory(target.rpartition("/")[0])
        try:
            flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=directory)
        except BaseException:
            os.close(directory)
            raise
        found = cls(directory, name, descriptor, durable)
        try:
            found._lock()
        except BaseException:
            found.close()
            raise
        return found

    def _lock(self) -> None:
        if not lock(self.descriptor):
            raise ConditionNotMatch(
                f"the temporary file {self.name!r} is in use by another process",
                hint="Wait for that copy to end, or stop it first",
            )

    @property
    def is_open(self) -> bool:
        return self.descriptor >= 0

    def publish(self, target: str, *, replace: bool) -> os.stat_result:
        """Make the file durable and give it the key's name; what it is then.

        Raises ConditionNotMatch when the name is taken and ``replace`` is False; the temporary
        file is still there then.
        """
        name = target.rpartition("/")[2]
        # The bytes first: a crash after the rename must not leave a name without them.
        if self._durable:
            os.fsync(self.descriptor)
        if replace:
            os.rename(self.name, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        else:
            self._publish_new(name, target)
        # The name itself is in the directory, and durable only once that is synced.
        if self._durable:
            os.fsync(self._directory)
        found = os.fstat(self.descriptor)
        self.close()
        return found

    def _publish_new(self, name: str, target: str) -> None:
        try:
            move_no_replace(self._directory, self.name, self._directory, name)
        except FileExistsError as error:
            if not self._is_published_as(name):
                raise ConditionNotMatch(
                    f"{target!r} exists already; it was left as it is"
                ) from error
            os.unlink(self.name, dir_fd=self._directory)

    def _is_published_as(self, name: str) -> bool:
        """Whether an earlier process died between linking the new name and removing the old."""
        found = os.stat(name, dir_fd=self._directory, follow_symlinks=False)
        return os.path.samestat(found, os.fstat(self.descriptor))

    def _check_no_replace(self) -> None:
        """Do on the empty file what will be done at the end, so that nothing is copied in vain."""
        name = change_name(self.name)
        move_no_replace(self._directory, self.name, self._directory, name)
        self.name = name

    def discard(self) -> None:
        """Remove the file. One that is gone already is no error."""
        if self.descriptor < 0:
            return
        try:
            with suppress(FileNotFoundError):
                os.unlink(self.name, dir_fd=self._directory)
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the file without removing it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            os.close(self._directory)
            self.descriptor = self._directory = -1

    def __del__(self) -> None:
        self.close()  # who forgot it must not hold its lock; the file is left for a sweep


def lock(descriptor: int) -> bool:
    """Hold the file for this process; False while another holds it. The kernel lets go for us.

    Where files cannot be locked (some network file systems) it is taken as held by us: a sweep
    has only the age to go by there.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (*_NO_SUCH_CALL, errno.ENOLCK):
            raise
    return True


def move_no_replace(old_directory: int, old: str, directory: int, new: str) -> None:
    """Rename between directories; FileExistsError when the new name is taken, in one atomic step.

    By renameat2 where kernel and file system know it, else by a hard link, which is as atomic.
    Raises Unsupported where neither is there.
    """
    try:
        syscalls.rename_no_replace(old_directory, old, directory, new)
        return
    except OSError as error:
        if error.errno not in _NO_SUCH_CALL:
            raise
    try:
        os.link(old, new, src_dir_fd=old_directory, dst_dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_SUCH_CALL:
            raise
        raise Unsupported(
            "this file system has neither renameat2 nor hard links: if_not_exists cannot be kept",
            hint="Copy without if_not_exists, or to another file system",
        ) from error
    # A crash before this leaves two names of one file; a resume knows them as one.
    os.unlink(old, dir_fd=old_directory)


def _create(directory: int, target: str, mode: int) -> tuple[str, int]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    name = new_name(target)
    try:
        return name, os.open(name, flags, mode, dir_fd=directory)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    name = new_name("")  # some file systems allow fewer than 255 bytes
    return name, os.open(name, flags, mode, dir_fd=directory)
