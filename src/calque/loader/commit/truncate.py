"""Truncate: empty a table and clear its records, by the protocol of a load."""

from __future__ import annotations

import secrets
import time

from calque.config import Settings
from calque.ledger import Ledger
from calque.ledger.claim import LoadStart
from calque.ledger.lease import this_process
from calque.ledger.manifest import Manifest
from calque.ledger.tables import register_table
from calque.loader.commit.protocol import LoadRun
from calque.loader.commit.recovery import recover
from calque.loader.commit.tables import open_table
from calque.loader.report import Report
from calque.loader.request.render import render_table

LEASE = 60.0


def truncate_table(name: str, settings: Settings, ledger: Ledger) -> Report:
    """Remove every row in one commit; every staged file counts as new afterwards.

    Loads that run at the same time are not disturbed: what they commit later stays, with its
    records.
    """
    lake = open_table(name, settings)
    snapshot = lake.open()
    table = register_table(ledger, lake.key(snapshot))
    owner = f"{this_process()}#{secrets.token_hex(4)}"
    recover(ledger, lake, table, owner, LEASE)
    start = LoadStart(
        load_id=f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}",
        owner=owner,
        lease_seconds=LEASE,
        base_version=lake.open().version,
        statement=f"TRUNCATE TABLE {render_table(name)}",
    )
    load = LoadRun(ledger, lake, table, start)
    manifest = Manifest(truncate=True)
    report = Report(lake.display)
    with load.released_if_stopped():
        load.claim(())
        with load.lease():
            load.prepare(manifest)
            report.table_version = load.commit(manifest)
    report.load_ids.append(start.load_id)
    return report
