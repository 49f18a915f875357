"""How Alembic reaches the database: through the connection that ``run_steps`` hands over.

The transaction is the caller's, who commits all steps at once or none.
"""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["note"],
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
