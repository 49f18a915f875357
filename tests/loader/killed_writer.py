"""A process that dies in the middle of writing a data file: what an executor may leave."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator

from calque.loader.run.writing.table_root import TableRoot

MIB = 1 << 20


def chunks() -> Iterator[bytes]:
    """Enough for a first part on every service, then the end."""
    for _ in range(3):
        yield bytes(6 * MIB)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    root, path, options = sys.argv[1:]
    place = TableRoot.at(root, json.loads(options))
    place.operator.write(place.full(path), chunks())
