"""The loads of a table by its name, also before there is a table."""

from __future__ import annotations

from calque.config import Settings
from calque.errors import NotFound
from calque.ledger.configured import existing_ledger_of
from calque.ledger.history import LoadRow, history
from calque.loader.commit.tables import open_table


def loads_of_table(name: str, settings: Settings, *, limit: int = 100) -> list[LoadRow]:
    """The last loads of a table, newest first; NotFound where there is neither table nor load.

    A load that fails makes no table, and its errors are what one looks for then. No ledger is made.
    """
    lake = open_table(name, settings, must_exist=True)
    try:
        key, missing = lake.key(lake.open()), None
    except NotFound as error:
        key, missing = lake.key(None), error
    ledger = existing_ledger_of(settings)
    found = []
    if ledger is not None:
        with ledger:
            found = history(ledger, key, limit=limit)
    if missing is not None and not found:
        raise missing
    return found
