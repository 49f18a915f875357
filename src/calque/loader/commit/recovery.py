"""Loads whose owner is dead are brought to their end by whoever meets them.

A marker in the table says what happened; without one a PREPARED load is rolled forward and a
WRITING one aborted.
"""

from __future__ import annotations

from dataclasses import dataclass

from calque.errors import (
    Aborted,
    DataError,
    Unsupported,
)
from calque.ledger import Ledger, TableRow
from calque.ledger.lease import OpenLoad, dead_loads, take_over
from calque.ledger.prepare import manifest_of
from calque.ledger.tables import namesakes
from calque.loader.commit.commit_load import (
    abort_load,
    commit_load,
    find_marker,
    open_same_table,
    release_load,
)
from calque.loader.commit.orphans import data_files_exist
from calque.loader.commit.tables import Lake, Mark


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery did with a dead load."""

    load_id: str
    mark: Mark


def recover(
    ledger: Ledger, lake: Lake, table: TableRow, owner: str, lease_seconds: float
) -> list[Recovered]:
    """Bring every dead load of the table to its end. Safe for any number of recoverers at once."""
    recovered = []
    for load in dead_loads(ledger, table):
        taken = take_over(ledger, load, owner, lease_seconds)
        if taken is not None:
            recovered.append(Recovered(load.load_id, _recover(ledger, lake, table, taken)))
    return recovered


def _recover(ledger: Ledger, lake: Lake, table: TableRow, load: OpenLoad) -> Mark:
    manifest = manifest_of(ledger, load.load_id)
    if manifest is None or load.state == "WRITING":
        return abort_load(ledger, lake, table, load, manifest, "its loader died while writing")[0]
    marker = find_marker(
        ledger, lake, open_same_table(lake, table), load.load_id, load.base_version
    )
    if marker is None and not data_files_exist(lake, manifest):
        return abort_load(ledger, lake, table, load, manifest, "its data files were cleaned away")[
            0
        ]
    try:
        commit_load(ledger, lake, table, load.load_id, load.base_version, manifest)
    except Aborted:
        return Mark.ABORTED
    except (DataError, Unsupported) as error:
        # The rows it replaces were moved, or must stay by now: it would fail for ever, and all
        # loads of the table with it.
        return abort_load(ledger, lake, table, load, manifest, error.message)[0]
    return Mark.COMMITTED


def release_lost(ledger: Ledger, lake: Lake, table: TableRow) -> list[str]:
    """Release dead loads of tables that had this one's name and were never made, or dropped.

    This table has their place, so none of them can be committed any more.
    """
    released = []
    for other in namesakes(ledger, table):
        for load in dead_loads(ledger, other):
            release_load(
                ledger, lake, load.load_id, "its table was never made, or is another by now"
            )
            released.append(load.load_id)
    return released
