"""How Alembic reaches the database: through the connection that ``migrate`` hands over.

Processes queue: on SQLite for the write lock, on PostgreSQL for an advisory one.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import text

# Any number serves, as long as every process takes the same one.
MIGRATION_LOCK = 0x63616C717565

connection = context.config.attributes["connection"]

if connection.dialect.name == "postgresql":
    connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": MIGRATION_LOCK})
    connection.commit()
try:
    context.configure(connection=connection, transaction_per_migration=False)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
finally:
    if connection.dialect.name == "postgresql":
        connection.rollback()
        connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": MIGRATION_LOCK})
        connection.commit()
