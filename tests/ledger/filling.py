"""Short ways to fill a ledger, through its own verbs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import select

from calque.ledger import Ledger, TableRow
from calque.ledger.claim import Claimed, LoadStart, Wanted, claim
from calque.ledger.finalise import finalise
from calque.ledger.manifest import FileResult, LoadedFile, Manifest
from calque.ledger.prepare import prepare
from calque.ledger.schema import claims
from calque.values import SourceIdentity

OWNER = "elsewhere/1/1"
STAMP = datetime(2026, 1, 1, tzinfo=UTC)


def identity(place: str, etag: str | None = "e", size: int = 10) -> SourceIdentity:
    return SourceIdentity(place, size, etag=etag, last_modified=STAMP)


def begin(
    ledger: Ledger,
    table: TableRow,
    load_id: str,
    places: Sequence[str | SourceIdentity],
    *,
    seen: str | None = None,
    force: bool = False,
    lease: float = 60,
) -> Claimed:
    """Open a load and claim files."""
    start = LoadStart(
        load_id=load_id, owner=OWNER, lease_seconds=lease, base_version=0, force=force
    )
    wanted = [Wanted(identity(one) if isinstance(one, str) else one, seen) for one in places]
    return claim(ledger, table, start, wanted)


def manifest(ledger: Ledger, places: Sequence[str | SourceIdentity]) -> Manifest:
    """What a load of these files would commit."""
    sources = [identity(one) if isinstance(one, str) else one for one in places]
    return Manifest(
        sources=tuple(
            LoadedFile(one, 3, 0, "x3:hash", ledger.now(), (("d.parquet", 0, 3),))
            for one in sources
        ),
        results=tuple(
            FileResult(one.location, one.location, "LOADED", 3, 3, bytes=one.size)
            for one in sources
        ),
    )


def load(
    ledger: Ledger,
    table: TableRow,
    load_id: str,
    places: Sequence[str | SourceIdentity],
    version: int = 1,
) -> None:
    """A whole load, from claim to finalise."""
    begin(ledger, table, load_id, places, force=True)
    prepare(ledger, load_id, OWNER, manifest(ledger, places))
    assert finalise(ledger, load_id, version)


def held(ledger: Ledger) -> dict[str, str]:
    """Which load holds which file."""
    with ledger.read() as connection:
        return {row.location: row.load_id for row in connection.execute(select(claims))}
