"""Rebuild the ledger's records of a table from the sidecars beside its data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from calque.errors import Unsupported
from calque.ledger import Ledger, TableRow, open_ledger
from calque.ledger.finish import adopt
from calque.ledger.tables import find_table, register_table, void_records
from calque.load.sidecar import Sidecars
from calque.load.tables import Lake, Mark, Snapshot


def rebuild(ledger: Ledger, lake: Lake, table: TableRow, snapshot: Snapshot) -> list[str]:
    """Take in every committed load the ledger does not know; the ids, oldest first.

    A load counts as committed if its sidecar was marked done or the table has its marker, and no
    restore has taken it back; what a restore brought back is recorded again. The
    table is noted as read at the very end, so whoever comes after one that failed or was killed
    midway does it again; doing it twice, or two at once, is harmless.
    """
    sidecars = Sidecars(lake.place)
    found: list[tuple[int, str]] = []
    for load_id, version in sidecars.loads():
        if version is None:
            version = _committed_at(snapshot, load_id)
        if version is not None:
            found.append((version, load_id))
    restored = snapshot.restored(0)
    adopted = []
    for version, load_id in sorted(found):
        if any(low < version <= high for low, high in restored):
            continue
        listed = sidecars.read(load_id, snapshot.table_id)
        if listed is not None and adopt(ledger, table, load_id, version, listed):
            adopted.append(load_id)
    void_records(ledger, table, restored, snapshot.version)
    return adopted


@contextmanager
def ledger_to_look(ledger: Ledger, lake: Lake, snapshot: Snapshot) -> Iterator[Ledger]:
    """For one who only looks: this ledger, or what it would be once it has taken the table in.

    That is built in a temporary one, so that a dry run tells what a load would do and writes
    nothing.
    """
    key = lake.key(snapshot)
    known = find_table(ledger, key)
    if known is not None and not known.unchecked:
        yield ledger
        return
    with TemporaryDirectory(prefix="calque-look-") as folder:
        where = Path(folder) / "ledger.db"
        with open_ledger(where, tenant=ledger.tenant, life=ledger.life, clock=ledger.now) as aside:
            rebuild(aside, lake, register_table(aside, key), snapshot)
            yield aside


def _committed_at(snapshot: Snapshot, load_id: str) -> int | None:
    try:
        marker = snapshot.marker(load_id, 0)
    except Unsupported:
        return None  # no marker, and the table's past is cut: not known to be committed
    if marker is None or marker.mark is not Mark.COMMITTED:
        return None
    return marker.version if marker.version is not None else snapshot.version
