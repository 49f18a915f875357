"""The stored half of API keys: the secret behind each head, and what was revoked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.schema import api_key_revocations, api_keys

INSERT_API_KEY = Statement("insert an api key", insert(api_keys))
API_KEY = Statement(
    "api key by head",
    select(api_keys.c.project_id, api_keys.c.secret).where(api_keys.c.head == bindparam("of_head")),
)
REVOKE = Statement(
    "revoke an api key",
    sqlite=sqlite.insert(api_key_revocations).on_conflict_do_nothing(),
    postgres=postgresql.insert(api_key_revocations).on_conflict_do_nothing(),
)
REVOKED = Statement(
    "revocation of a tail",
    select(api_key_revocations.c.tail).where(api_key_revocations.c.tail == bindparam("of_tail")),
)


class KeySecret(NamedTuple):
    """The project of an API key and the secret that its chain starts from."""

    project_id: bytes
    secret: bytes


def store_api_key(
    database: Database, head: bytes, project_id: bytes, secret: bytes, name: str
) -> None:
    """Keep the secret of a new key."""
    database.write(
        lambda transaction: transaction.run(
            INSERT_API_KEY,
            {
                "head": head,
                "project_id": project_id,
                "secret": secret,
                "name": name,
                "created_at": transaction.now,
            },
        )
    )


def api_key_secret(database: Database, head: bytes) -> KeySecret | None:
    """The secret behind ``head``, or ``None``."""
    row = database.read(lambda transaction: transaction.row(API_KEY, {"of_head": head}))
    return KeySecret(*row) if row else None


def revoke_tail(database: Database, tail: bytes) -> None:
    """Refuse every key whose chain passes through ``tail``; again is nothing."""
    database.write(
        lambda transaction: transaction.run(REVOKE, {"tail": tail, "revoked_at": transaction.now})
    )


def any_revoked(database: Database, tails: Sequence[bytes]) -> bool:
    """Whether one of the tails of a chain was revoked."""

    def work(transaction: Transaction) -> bool:
        found = transaction.batch([(REVOKED, {"of_tail": tail}) for tail in tails])
        return any(found)

    return database.read(work)
