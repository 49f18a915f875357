"""The rows of a Delta table for one who looks at it: how many, and the first ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from calque.loader.commit.tables.log_mirror import LogMirror
from calque.loader.run.writing.table_root import TableRoot


def count_rows(table: DeltaTable) -> int | None:
    """How many rows there are by the log alone; None where it does not tell."""
    if pa.table(table.deletion_vectors()).num_rows:
        return None
    counts = pa.table(table.get_add_actions(flatten=True)).column("num_records").to_pylist()
    return None if None in counts else sum(counts)


def first_rows(table: DeltaTable, count: int, place: TableRoot, log: LogMirror | None) -> pa.Table:
    """Rows of the first data files, no more of which are opened than it takes."""
    dataset = table.to_pyarrow_dataset()
    found = [dataset.schema.empty_table()]
    left = count
    for fragment in dataset.get_fragments():
        if left <= 0:
            break
        with _at_hand(fragment.path, place, log):
            rows = fragment.scanner(schema=dataset.schema).head(left)
        found.append(rows)
        left -= len(rows)
    return pa.concat_tables(found)


@contextmanager
def _at_hand(path: str, place: TableRoot, log: LogMirror | None) -> Iterator[None]:
    """Where the library reads the log from a mirror it looks for data files there as well."""
    if log is None:
        yield
        return
    here = Path(log.folder) / path
    here.parent.mkdir(parents=True, exist_ok=True)
    with here.open("wb") as file:
        for chunk in place.operator.read_stream(place.full(path)):
            file.write(chunk)
    try:
        yield
    finally:
        here.unlink()
