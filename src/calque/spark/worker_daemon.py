"""The process that forks Spark's Python workers, with what tasks of loads import imported before.

pyspark's own daemon imports next to nothing, so that each worker it forks spends a third of a
second on imports when its first task comes. Its reason is that a process with threads must not
fork, and that libraries start threads when they are imported. Those that we import are told not to;
should one do it nevertheless, pyspark's own daemon takes the place of this process.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.daemon import manager

PRELOADED = (
    "pyspark.worker",
    # By their names: nothing below the loader imports it, and it may lack its extra here.
    "calque.loader.run.engines.spark",
    "calque.loader.run.formats.csv.reader",
    "calque.loader.run.formats.json.reader",
    "calque.operator.services.fs.builder",
)
THREADLESS = {
    "OPENBLAS_NUM_THREADS": "1",  # of numpy, which pyarrow imports
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # of pyarrow's allocator
}


def main() -> None:
    """Import, then serve as pyspark's daemon does."""
    with _printing_aside():
        _import_before_fork()
    if _count_threads() > 1:
        arguments = [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]]
        os.execv(sys.executable, arguments)
    manager()


@contextmanager
def _printing_aside() -> Iterator[None]:
    """What is printed goes to standard error: the JVM takes all else for the port of the daemon."""
    kept = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, sys.stdout.fileno())
        os.close(kept)


def _import_before_fork() -> None:
    added = {name: value for name, value in THREADLESS.items() if name not in os.environ}
    os.environ.update(added)
    for name in PRELOADED:
        with suppress(Exception):  # a task that needs it says what is wrong with it
            importlib.import_module(name)
    for name in added:
        del os.environ[name]


def _count_threads() -> int:
    """Also those that Python knows nothing of; 2 where that cannot be told."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return 2


if __name__ == "__main__":
    main()
