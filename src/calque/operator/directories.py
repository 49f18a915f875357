"""Directories made and removed: real ones on a file system, keys that end in ``/`` elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from calque.errors import AlreadyExists, ConditionNotMatch, InvalidInput, NotFound
from calque.operator import paths
from calque.operator.interruptible import result_of
from calque.operator.options import DeleteOptions, WriteOptions
from calque.operator.service import Directories, Service

_AT_ONCE = 16


def create_dir(service: Service, path: str) -> None:
    """Make a directory and what is missing above it; one that is there stays as it is."""
    if not paths.is_directory(paths.valid_path(path)) or not path:
        raise InvalidInput(
            f"{path!r} does not name a directory", hint=f"A directory ends in /: {path}/."
        )
    if isinstance(service, Directories):
        service.create_dir(path)
        return
    fresh = service.capability.write_with_if_not_exists
    # A marker that is there may hold bytes of somebody's: it is not written over.
    if not fresh and _is_there(service, path):
        return
    with suppress(AlreadyExists, ConditionNotMatch):
        service.write(path, (), WriteOptions(if_not_exists=fresh, size_hint=0))


def _is_there(service: Service, path: str) -> bool:
    """As near as a server that keeps no condition lets us come."""
    try:
        service.stat(path)
    except NotFound:
        return False
    return True


def remove_all(service: Service, path: str) -> int:
    """Remove an object and everything below it as a directory; how many objects went.

    Not atomic: what was removed before an error is gone, and a second call goes on.
    """
    if not paths.valid_path(path):
        raise InvalidInput(
            "remove_all needs a path: everything under the root is not removed by an empty one"
        )
    count = 0
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="calque-remove") as pool:
        flying: deque[Future[None]] = deque()
        for found in _below(service, path):
            flying.append(pool.submit(service.delete, found, DeleteOptions()))
            count += 1
            if len(flying) > _AT_ONCE:
                result_of(flying.popleft())
        for each in flying:
            result_of(each)
    if isinstance(service, Directories):
        service.remove_empty(path)
    return count


def _below(service: Service, path: str) -> Iterator[str]:
    """The object of a name, and those in the directory of that name; none that only begins so."""
    folder = path if path.endswith("/") else f"{path}/"
    entries = service.list(path)
    for entry in entries:
        if entry.path == path or entry.path.startswith(folder):
            yield entry.path
