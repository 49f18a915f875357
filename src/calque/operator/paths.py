"""Paths inside an operator's root.

An object's path is its key, kept exactly: nothing is decoded, trimmed or joined, because ``a//b``,
``a%20b`` and ``a b`` are three keys. What could lead out of the root is refused. Services over a
file system read paths through :func:`collapse`.
"""

from __future__ import annotations

from calque.errors import InvalidInput, IsADirectory, PathEscape


def is_directory(path: str) -> bool:
    """Whether a path names a directory: it is empty (the root) or ends in ``/``."""
    return path == "" or path.endswith("/")


def valid_path(path: str) -> str:
    """The path of an object or directory, unchanged; raises where it cannot be one."""
    if not isinstance(path, str):
        raise InvalidInput(f"a path must be a string, not {type(path).__name__}")
    if "\0" in path:
        raise InvalidInput(f"a path cannot hold a NUL character: {path!r}")
    if ".." in path.split("/"):
        raise PathEscape(
            f"{path!r} leads out of the operator's root",
            hint="Open an operator on a root that holds everything you need.",
        )
    return path


def file_path(path: str, verb: str) -> str:
    """The path of an object; raises IsADirectory for an empty one or one that ends in ``/``."""
    if is_directory(valid_path(path)):
        shown = repr(path) if path else "the root"
        raise IsADirectory(
            f"cannot {verb} {shown}: an object's path is needed and this is a directory",
            hint="Name one object; trees are copied by copy_tree.",
        )
    return path


def unicode_path(path: str) -> str:
    """The path, for services whose keys are UTF-8; raises where it cannot be encoded."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"a key must be UTF-8, which {path!r} is not") from error
    return path


def collapse(path: str) -> str:
    """The path with empty and ``.`` segments taken out; a trailing ``/`` stays."""
    kept = "/".join(part for part in path.split("/") if part not in ("", "."))
    return kept + "/" if kept and path.endswith("/") else kept


def join(root: str, path: str) -> str:
    """The key of a path under a root; the root ``""`` or ``a/b`` has no slash at its end."""
    return f"{root}/{path}" if root else path


def relative(root: str, key: str) -> str:
    """The path of a key under a root: the reverse of :func:`join`."""
    return key[len(root) + 1 :] if root else key
