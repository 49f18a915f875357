"""Labels: a name the user gives a statement, which makes it idempotent as a whole."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress

from calque.errors import NotFound, Unavailable
from calque.ledger import Ledger, TableRow
from calque.ledger.history import LoadRow, find_load, loads_of_label, results_of
from calque.loader.commit.sidecars import Sidecars
from calque.loader.request.request import LoadRequest


def find_replay(ledger: Ledger, table: TableRow, request: LoadRequest) -> list[LoadRow]:
    """The loads of a label that was loaded whole: nothing is left to do. Else none.

    Raises Unavailable while another process is loading the label.
    """
    if request.label is None:
        return []
    prior = loads_of_label(ledger, table.number, request.label)
    done = [one for one in prior if one.state == "COMMITTED"]
    if any(one.last for one in done):
        return done
    _refuse_running(prior, request.label)
    return []


def find_loaded_by_label(ledger: Ledger, table: TableRow | None, request: LoadRequest) -> set[str]:
    """Files that an earlier, unfinished run of a forced statement has loaded already."""
    if table is None or request.label is None or not request.force:
        return set()
    return {
        row.location
        for one in loads_of_label(ledger, table.number, request.label)
        if one.state == "COMMITTED"
        for row in results_of(ledger, one.load_id)
    }


def count_uses_of_label(ledger: Ledger, table: TableRow | None, request: LoadRequest) -> int:
    """How many loads of the table have had the label, whatever became of them."""
    if table is None or request.label is None:
        return 0
    return len(loads_of_label(ledger, table.number, request.label))


def new_load_id(
    ledger: Ledger, table: TableRow, sidecars: Sidecars, label: str | None, used: int
) -> str:
    """The label itself where it is new; else one that no load of those ``used`` has had."""
    if label is None:
        return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"
    # A tilde is in no label, so that no other label makes the same id.
    named = f"{label}~{used + 1}" if used else label
    with suppress(NotFound):
        if find_load(ledger, named).table_number != table.number:
            named = f"{named}~t{table.number}"
    # Another ledger may run the same label at this moment, and the names of data files, sidecars
    # and markers come from the id: only one of them gets the plain one.
    return named if sidecars.reserve(named) else f"{named}~{secrets.token_hex(4)}"


def _refuse_running(prior: Sequence[LoadRow], label: str) -> None:
    if any(one.state in ("WRITING", "PREPARED") for one in prior):
        raise Unavailable(
            f"the label {label!r} is being loaded by another process",
            hint="Run the statement again later: it will report what that one did.",
        )
