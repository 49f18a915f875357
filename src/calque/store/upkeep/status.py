"""How a store is, by what its services found last: no node is asked, and nothing is changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from calque.store.embedded.description import Description, read_json
from calque.store.embedded.store import STORE_FILE
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import current_revision, revisions
from calque.store.metabase.upkeep.last_runs import last_run
from calque.store.metabase.upkeep.repair_queue import count_repairs
from calque.values import count_of


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What there is to say of a store."""

    nodes: dict[str, int]
    """How many of each state."""
    repair_queue: int
    lost_segments: int
    lost_objects: int
    findings: int
    """What the last fsck found."""
    is_current: bool = True
    """Whether its schema is that of this release: else nothing else is known."""

    @property
    def problems(self) -> list[str]:
        """What somebody should look at, the worst first."""
        failing, silent = (self.nodes.get(state, 0) for state in ("failing", "silent"))
        lost = count_of(self.lost_segments, "segment")
        told = {
            f"{lost} of {count_of(self.lost_objects, 'object')} lost": self.lost_segments,
            f"{count_of(self.repair_queue, 'segment')} waiting for repair": self.repair_queue,
            f"{count_of(failing, 'node')} giving wrong pieces": failing,
            f"{count_of(silent, 'node')} not answering": silent,
            f"{count_of(self.findings, 'thing')} wrong, as fsck found": self.findings,
        }
        return [line for line, count in told.items() if count]

    @property
    def advice(self) -> str:
        """What to do about it."""
        if self.lost_segments:
            return "bring a lost node back, then: calque store repair"
        if self.repair_queue or self.nodes.get("failing") or self.nodes.get("silent"):
            return "calque store repair"
        return "calque store fsck" if self.findings else ""


def read_status(folder: Path) -> StoreStatus:
    """The status of the store in a folder; errors as when it is opened."""
    description = read_json(folder / STORE_FILE, Description.from_json)
    database = Database.open(description.database_in(folder), create=False)
    try:
        if current_revision(database) != revisions()[-1]:
            return StoreStatus({}, 0, 0, 0, 0, is_current=False)
        return status_of(database)
    finally:
        database.close()


def status_of(database: Database) -> StoreStatus:
    """The status of a store whose database is open."""
    repaired, checked = last_run(database, "repair"), last_run(database, "fsck")
    return StoreStatus(
        nodes=dict(Counter(each.state for each in Nodes(database).all())),
        repair_queue=count_repairs(database),
        lost_segments=0 if repaired is None else int(repaired.report["lost_segments"]),
        lost_objects=0 if repaired is None else int(repaired.report["lost_objects"]),
        findings=0 if checked is None else int(checked.report["findings"]),
    )
