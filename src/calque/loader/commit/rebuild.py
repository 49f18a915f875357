"""Rebuild the ledger's records of a table from the sidecars beside its data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from calque.errors import IntegrityError, NotFound
from calque.ledger import Ledger, TableRow, open_ledger
from calque.ledger.adopt import find_known_loads
from calque.ledger.tables import find_table, register_table, void_records
from calque.loader.commit.commit_load import fence
from calque.loader.commit.our_commits import (
    learn_forgotten,
    list_sidecars,
    take_in,
    unknown_commits,
)
from calque.loader.commit.sidecars import Sidecars
from calque.loader.commit.tables import Committed, Lake, Mark, Snapshot


def rebuild(
    ledger: Ledger, lake: Lake, table: TableRow, snapshot: Snapshot, *, look_only: bool = False
) -> list[str]:
    """Take in every committed load the ledger does not know; the ids, oldest first.

    A load counts as committed if its sidecar was marked done or the table has its marker, and no
    restore has taken it back; what a restore brought back is recorded again. One without an outcome
    may be a loader that sleeps: unless we only look, it is fenced, for its files count as new here.
    The table is noted as read at the very end, so whoever comes after one that failed or was killed
    midway does it again; doing it twice, or two at once, is harmless.
    """
    listing = list_sidecars(lake, snapshot)
    commits = listing.commits
    if listing.open and not look_only:
        commits = commits + _fence(ledger, lake, table, snapshot, listing.open)
    restored = snapshot.find_restores(0)
    adopted = take_in(
        ledger, lake, table, snapshot, commits, restored, purge=True, look_only=look_only
    )
    learn_forgotten(ledger, lake, table)
    void_records(ledger, table, restored, snapshot.version)
    return adopted


def _fence(
    ledger: Ledger, lake: Lake, table: TableRow, snapshot: Snapshot, load_ids: Sequence[str]
) -> list[Committed]:
    """Abort markers for loads that no loader of this ledger runs; those that were quicker."""
    known = find_known_loads(ledger, load_ids)
    quicker = []
    for load_id in load_ids:
        if load_id in known or not _may_count(ledger, lake, table, load_id):
            continue
        mark, version = fence(ledger, lake, table, load_id, snapshot.version)
        if mark is Mark.COMMITTED:
            quicker.append(Committed(load_id, version))
    return quicker


def _may_count(ledger: Ledger, lake: Lake, table: TableRow, load_id: str) -> bool:
    """Whether it is a load into this very table, for this tenant."""
    try:
        listed = Sidecars(lake.place).read(load_id, table.key.table_id, ledger.tenant)
    except NotFound:
        return False
    except IntegrityError:
        return True  # nobody can tell, and nobody could take it in
    return listed is not None


@contextmanager
def ledger_to_look(ledger: Ledger, lake: Lake, snapshot: Snapshot) -> Iterator[Ledger]:
    """For one who only looks: this ledger, or what it would be once it has taken the table in.

    That is built in a temporary one, so that a dry run tells what a load would do and writes
    nothing.
    """
    key = lake.key(snapshot)
    known = find_table(ledger, key)
    if known is not None and not known.is_unchecked:
        since = known.checked_version
        found = unknown_commits(ledger, lake, known, snapshot, since)
        if found.by_log and not found.commits:
            yield ledger
            return
    with TemporaryDirectory(prefix="calque-look-") as folder:
        where = Path(folder) / "ledger.db"
        with open_ledger(where, tenant=ledger.tenant, life=ledger.life, clock=ledger.now) as aside:
            rebuild(aside, lake, register_table(aside, key), snapshot, look_only=True)
            yield aside
