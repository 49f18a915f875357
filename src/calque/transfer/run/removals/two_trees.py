"""Source and target of a move, proven to be two trees before anything is deleted.

Names prove nothing: one server may have two addresses, one folder may be served by S3 as well, one
store be reached by its gateway. So the first delete of a move waits for a look: an object of our
own that is put into one of them must not be seen in the other.

Its name is new each time, since a server may remember what was not there; it begins as all of this
pair do, so that a listing passes it over, and a resume finds what a killed process has left.
"""

from __future__ import annotations

import threading
import uuid
from contextlib import suppress
from hashlib import blake2b

from calque import faults
from calque.errors import IsSameFile, NotFound, PermissionDenied, Unsupported
from calque.operator.options import DeleteOptions, WriteOptions
from calque.transfer.plan.side import Side


class TwoTrees:
    """Looks once, when it is first asked. Safe between threads."""

    def __init__(self, source: Side, target: Side) -> None:
        self._source = source
        self._target = target
        self._lock = threading.Lock()
        self._are_two: bool | None = None

    def require(self) -> None:
        """Raise IsSameFile where what lies in one of them lies in the other by that."""
        with self._lock:
            if self._are_two is None:
                self._are_two = self._look()
        if not self._are_two:
            raise IsSameFile(
                f"{self._source.location()} and {self._target.location()} are one tree by two "
                "names",
                hint="Nothing was deleted: it would be gone from both.",
            )

    def _look(self) -> bool:
        source, target = self._source, self._target
        # Of two folders of one file system the system itself tells whether they are one.
        if source.is_local and target.is_local:
            return True
        prefix = look_prefix(source, target)
        if _shows(source, target, prefix):
            return False
        try:
            # And the other way: a server may remember for minutes what was not there.
            return not _shows(target, source, prefix)
        except (PermissionDenied, Unsupported):
            return True  # who may only read and delete the source


def look_prefix(source: Side, target: Side) -> str:
    """How the names begin that looks at these two put into them."""
    pair = "\n".join((source.location(), target.location())).encode("utf-8", "surrogateescape")
    return f"calque-move-{blake2b(pair, digest_size=4).hexdigest()}-"


def remove_left_looks(source: Side, target: Side) -> None:
    """Remove what the look of a killed process has left. No look may be under way."""
    prefix = look_prefix(source, target)
    for side in (source, target):
        with suppress(NotFound):  # of a bucket that has gone meanwhile nothing is left
            for entry in side.service.list(side.key(prefix)):
                side.service.delete(entry.path, DeleteOptions())


def _shows(seen_in: Side, put_into: Side, prefix: str) -> bool:
    """Whether an object that is put into one tree is seen in the other."""
    name, into = f"{prefix}{uuid.uuid4().hex}", put_into.service
    made = into.write(put_into.key(name), (b"calque",), WriteOptions())
    faults.point("tree.look")
    try:
        seen_in.service.stat(seen_in.key(name))
    except NotFound:
        return False
    finally:
        # By its version: a bucket that keeps them is to keep nothing of ours.
        version = made.version if into.capability.versions else None
        into.delete(put_into.key(name), DeleteOptions(version=version))
    return True
