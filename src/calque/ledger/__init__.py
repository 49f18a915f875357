"""The ledger: what was loaded already, the "meta service" of a load.

Data model: a **table** is (tenant, database, table name, the table's own id); under it a **file**
record for every staged file that was loaded, by full location, with all its metadata; a **load**
is one try to bring files into the table, with a lease; a **claim** is a file held by a load that
is not over; **results**, **errors** and **purges** belong to a load.

Invariants:

- a file record exists only for files whose rows are in the table (or were, by its log);
- a claim exists only while its load is WRITING or PREPARED, and a file has one claim at most;
- a load leaves WRITING or PREPARED once, for COMMITTED or ABORTED, together with all its claims;
- safety never rests on a clock: a lease that ran out only says that somebody else may recover.

The flow of a load through it: ``tables.register_table`` → ``files.scan`` (what is known) →
``claim`` → ``lease.renew_lease`` while it writes → ``prepare`` → the commit to the table, which is
none of the ledger's → ``finalise`` or ``abort`` → ``purge``. Whoever finds a load that died goes on
from where it stopped: ``lease.take_over``, then ``finalise`` or ``abort``.

Files:

- ``database``: where the ledger lives, its transactions and its clock;
- ``schema``, ``migrate``, ``migrations/``: the tables, and the steps that made them;
- ``tables``: the tables that are loaded into; ``files``: the records of loaded files;
- ``identity``: same file? Rules without I/O;
- ``claim``, ``lease``: who loads which files, and whether it still lives;
- ``manifest``, ``prepare``, ``finalise``, ``abort``, ``record``: the end of a load;
- ``adopt``: loads of other ledgers, told by the table;
- ``jobs``, ``job_record``, ``job_progress``: runs of trees, what is left of them, what failed;
- ``history``: what was done; ``recent``: what happened lately, over all tables;
  ``purge``: sources to be removed; ``expire``: what is too old to keep.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calque.ledger.database import Ledger, open_ledger
    from calque.ledger.identity import GRAIN, Known, Verdict, is_racy, judge
    from calque.ledger.tables import TableKey, TableRow

__all__ = [
    "GRAIN",
    "Known",
    "Ledger",
    "TableKey",
    "TableRow",
    "Verdict",
    "is_racy",
    "judge",
    "open_ledger",
]

_HOMES = {
    "GRAIN": "identity",
    "Known": "identity",
    "Ledger": "database",
    "TableKey": "tables",
    "TableRow": "tables",
    "Verdict": "identity",
    "is_racy": "identity",
    "judge": "identity",
    "open_ledger": "database",
}


def __getattr__(name: str) -> Any:
    """Imported when it is first used: not all that lies here needs a library of SQL."""
    if name not in _HOMES:
        raise AttributeError(f"module 'calque.ledger' has no attribute {name!r}")
    return getattr(import_module(f"calque.ledger.{_HOMES[name]}"), name)
