"""The ledger that the configuration names."""

from __future__ import annotations

from pathlib import Path

from calque.config import Settings, state_folder
from calque.ledger.database import Ledger, open_ledger
from calque.ledger.identity import DAY


def ledger_of(settings: Settings) -> Ledger:
    """The ledger of the configuration: a URL, else a SQLite file in the user's state folder."""
    return open_ledger(
        _place(settings), tenant=settings.tenant, life=settings.ledger.expire_days * DAY
    )


def existing_ledger_of(settings: Settings) -> Ledger | None:
    """The same for one who only looks: None where no file is there, which is not made then."""
    place = _place(settings)
    is_file = not place.startswith("postgres")
    if is_file and not Path(place.removeprefix("sqlite:///")).expanduser().exists():
        return None
    return ledger_of(settings)


def environment_of(settings: Settings) -> dict[str, str]:
    """What tells another process of calque about the same ledger, whatever flags it has."""
    file = {} if settings.source is None else {"CALQUE_CONFIG": str(settings.source.absolute())}
    return {"CALQUE_LEDGER_URL": _place(settings), "CALQUE_TENANT": settings.tenant, **file}


def _place(settings: Settings) -> str:
    url = settings.ledger.url
    return url.reveal() if url is not None else str(state_folder() / "ledger.db")
