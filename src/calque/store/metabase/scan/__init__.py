"""The segments of a metabase as one snapshot saw them, in ranges that tasks read by themselves.

``snapshot`` opens one on either database and says what it holds; ``postgres`` and ``sqlite`` know
how, ``shared_copy`` is what tasks read of a SQLite file; ``ranges`` is what travels to a task.
"""

from calque.store.metabase.scan.ranges import COLUMNS, Range, Reader, SnapshotSource
from calque.store.metabase.scan.snapshot import RANGE_ROWS, Snapshot, open_reader, open_snapshot

__all__ = [
    "COLUMNS",
    "RANGE_ROWS",
    "Range",
    "Reader",
    "Snapshot",
    "SnapshotSource",
    "open_reader",
    "open_snapshot",
]
