"""How a node's root is known: a file in it that carries the node's id.

A disk that is not mounted leaves an empty folder behind, which takes writes and forgets them at the
next mount, and in which every delete succeeds. So a root without the file, or with that of another
node, is a failed node and never an empty one.

A folder can be unmounted at any moment, so there the file is looked at before and after each
write. Behind a network it is asked for once, and again after every error.
"""

from __future__ import annotations

from calque.errors import AlreadyExists, CalqueError, NotFound, Unavailable
from calque.operator import Operator

IDENTITY = "calque-node"
_FOLDERS = ("fs", "file")
_LONGEST = 256
"""Bytes of the file that are read: a stranger's may be of any size."""


class Identity:
    """The identity file of one node. Safe to share between threads."""

    def __init__(self, node_id: bytes, root: Operator) -> None:
        self._id = node_id
        self._root = root
        self._volatile = root.scheme in _FOLDERS
        self._seen = False

    def require(self) -> None:
        """Unavailable unless the root is this node's, as far as that must be asked again."""
        if self._seen and not self._volatile:
            return
        found = self.read()
        if found != self._id:
            raise Unavailable(
                f"{self._root.location()} is not the root of node {self._id.hex()[:12]}: "
                + (f"its file {IDENTITY} is missing" if found is None else "it is another node's"),
                hint="Is the disk mounted? Nothing is written to it or deleted on it until then.",
            )
        self._seen = True

    def require_after_write(self) -> None:
        """The same once more, where a disk may have gone while a piece was written."""
        if self._volatile:
            self.require()

    def doubt(self) -> None:
        """Ask again before the next use."""
        self._seen = False

    def read(self) -> bytes | None:
        """The id in the root; None without the file, and empty when it names no node."""
        try:
            text = b"".join(self._root.read_stream(IDENTITY, offset=0, length=_LONGEST))
        except NotFound:
            return None
        try:
            return bytes.fromhex(text.decode("ascii").strip())
        except ValueError:
            return b""

    def write(self) -> None:
        """Make the root this node's; AlreadyExists when it is another's."""
        self.refuse_foreign()
        try:
            self._root.write(IDENTITY, self._id.hex().encode() + b"\n")
        except CalqueError:
            self.doubt()
            raise

    def refuse_foreign(self) -> None:
        """AlreadyExists when the root is another node's."""
        if self.read() not in (None, self._id):
            raise AlreadyExists(
                f"{self._root.location()} is a node of another store",
                hint=f"Name another root, or remove its file {IDENTITY} if that store is gone.",
            )
