"""The ledger that the configuration names."""

from __future__ import annotations

from calque.config import Settings, state_folder
from calque.ledger.database import Ledger, open_ledger
from calque.ledger.identity import DAY


def ledger_of(settings: Settings) -> Ledger:
    """The ledger of the configuration: a URL, else a SQLite file in the user's state folder."""
    url = settings.ledger.url
    where = url.reveal() if url is not None else str(state_folder() / "ledger.db")
    return open_ledger(where, tenant=settings.tenant, life=settings.ledger.expire_days * DAY)
