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

Files: ``schema`` (tables, versions), ``database`` (SQLite or PostgreSQL, transactions),
``identity`` (same file?), ``files`` (scan, mget, renew), ``lease``, ``claim``, ``finish``,
``history``, ``purge``, ``expire``.
"""

from calque.ledger.database import Ledger, open_ledger
from calque.ledger.identity import GRAIN, Known, Verdict, judge, racy
from calque.ledger.tables import TableKey, TableRow

__all__ = [
    "GRAIN",
    "Known",
    "Ledger",
    "TableKey",
    "TableRow",
    "Verdict",
    "judge",
    "open_ledger",
    "racy",
]
