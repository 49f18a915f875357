"""Access keys of the S3 gateway: rows that tell nothing without the id of the key."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import bindparam, delete, insert, select

from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.model.schema import s3_keys

INSERT_KEY = Statement("insert an s3 key", insert(s3_keys))
_COLUMNS = (s3_keys.c.key_hash, s3_keys.c.sealed, s3_keys.c.note, s3_keys.c.created_at)
KEY = Statement(
    "s3 key by its hash", select(*_COLUMNS).where(s3_keys.c.key_hash == bindparam("of_hash"))
)
KEYS = Statement(
    "every s3 key",
    select(*_COLUMNS).order_by(s3_keys.c.created_at, s3_keys.c.key_hash),
    whole_table="keys are made by hand, and there are few",
)
DELETE_KEY = Statement(
    "delete an s3 key", delete(s3_keys).where(s3_keys.c.key_hash == bindparam("of_hash"))
)


class S3KeyRow(NamedTuple):
    """A key by the SHA-256 of its id; ``sealed`` and ``note`` are nonce and ciphertext."""

    key_hash: bytes
    sealed: bytes
    note: bytes
    created_at: int = 0


def insert_key(database: Database, row: S3KeyRow) -> None:
    """Keep a new key."""
    database.write(
        lambda transaction: transaction.run(
            INSERT_KEY, {**row._asdict(), "created_at": transaction.now}
        )
    )


def find_key(database: Database, key_hash: bytes) -> S3KeyRow | None:
    """The key of this hash, or ``None``."""
    found = database.read_rows(KEY, {"of_hash": key_hash})
    return _row(found[0]) if found else None


def list_keys(database: Database) -> list[S3KeyRow]:
    """Every key, oldest first."""
    return [_row(each) for each in database.read_rows(KEYS, {})]


def delete_key(database: Database, key_hash: bytes) -> None:
    """Forget a key; again is nothing."""
    database.write(lambda transaction: transaction.run(DELETE_KEY, {"of_hash": key_hash}))


def _row(found: tuple[bytes, bytes, bytes, int]) -> S3KeyRow:
    key_hash, sealed, note, created_at = found
    return S3KeyRow(bytes(key_hash), bytes(sealed), bytes(note), created_at)
