"""What drivers have to say of lost connections is no business of a user's terminal."""

from __future__ import annotations

import subprocess
import sys

from tests.servers.postgres import PostgresServer

SCRIPT = """
import sys
from sqlalchemy import text
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import current_revision, migrate
from calque.store.metabase.accounts.projects import create_project, find_project

def cut_all():
    killer = Database.open(sys.argv[1])
    with killer.engine.connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                "WHERE datname = current_database() AND pid <> pg_backend_pid()"))
    killer.close()

database = Database.open(sys.argv[1])
migrate(database)
create_project(database, "p")
cut_all()
assert find_project(database, "p")
assert current_revision(database)
held = database.engine.raw_connection()
held.driver_connection.execute("SELECT 1")
cut_all()
held.close()
database.close()
"""


def test_cut_connections_are_not_told_on_stderr(postgres: PostgresServer) -> None:
    """The server ends every connection, idle, in use and while it is given back: no noise."""
    url = postgres.database()
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT, url], capture_output=True, text=True, check=False
    )
    postgres.drop(url)
    assert answer.stderr == answer.stdout == ""
    assert answer.returncode == 0
