"""The ledger's PostgreSQL drops every connection in the middle of a load, as when it restarts."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import event

from calque.errors import Unavailable
from calque.loader.run_request import RequestRun
from tests.loader.loader import LEASE, Place
from tests.loader.world import assert_settled, write_files

pytestmark = pytest.mark.parametrize("ledger_url", ["postgres"], indirect=True)

CUT = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND datname = current_database()
"""


def cut_at(statement: RequestRun, url: str, step: str) -> None:
    """Drop all connections just before the first SQL that begins so."""
    left = [step]

    def cut(_connection: object, _cursor: object, sql: str, *_rest: object) -> None:
        if left and sql.startswith(left[0]):
            left.clear()
            plain = url.replace("postgresql+psycopg", "postgresql")
            with psycopg.connect(plain, autocommit=True) as server:
                server.execute(CUT)

    event.listen(statement.ledger.engine, "before_cursor_execute", cut)


@pytest.mark.parametrize(
    ("step", "heals"),
    [
        ("INSERT INTO calque_claims", False),
        ("UPDATE calque_loads SET state", False),  # prepare
        ("INSERT INTO calque_files", True),  # finalise: the table has the rows by then
        ("INSERT INTO calque_results", True),
    ],
)
def test_each_file_once(tmp_path: Path, ledger_url: str, step: str, heals: bool) -> None:
    """Connections cut at a step: a clear error or none, and every file is in the table once."""
    place = Place(tmp_path, "delta", ledger_url)
    expected = write_files(place.stage, 3)
    statement = place.statement()
    cut_at(statement, ledger_url, step)
    if heals:
        assert statement.run().files_loaded == 3
    else:
        with pytest.raises(Unavailable, match="ledger"):
            statement.run()
    time.sleep(1.2 * LEASE)
    place.load()
    assert_settled(place, expected)
