"""Steps of a schema, taken by Alembic on a connection whose transaction is the caller's.

Set apart, since Alembic is slow to import and rarely needed.
"""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

ENVIRONMENT = Path(__file__).parent / "migrations"

# Alembic keeps what it works on in module globals; other processes queue in the database.
_ONE_AT_A_TIME = threading.Lock()


def run_steps(
    connection: Connection, folder: Path, note: str, *, begin: str | None, end: str
) -> None:
    """Take the steps of ``folder`` up to ``end``, noted in the table ``note``.

    ``begin`` is the step at which a database stands that has no note yet.
    """
    config = Config()
    _set(config, "script_location", str(ENVIRONMENT))
    _set(config, "version_locations", str(folder))
    _set(config, "path_separator", "newline")  # the others may be part of a folder's name
    config.attributes.update(connection=connection, note=note)
    with _ONE_AT_A_TIME:
        if begin is not None:
            command.stamp(config, begin)
        command.upgrade(config, end)


def _set(config: Config, name: str, value: str) -> None:
    # A percent sign is the beginning of a reference there, unless it is doubled.
    config.set_main_option(name, value.replace("%", "%%"))
