"""The figures of a store on the overview: what is stored, who is ill, what ran and what is due."""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import timedelta
from typing import Any

from calque.console.charts import Chart
from calque.console.text import moment, shell_line
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.upkeep.last_runs import last_run
from calque.store.metabase.upkeep.repair_queue import count_repairs
from calque.store.metabase.upkeep.usage_history import HOUR_US, UsageRow, read_usage
from calque.store.upkeep.engines import ScanOptions
from calque.store.upkeep.status import StoreStatus, status_of
from calque.store.upkeep.tally import count_usage
from calque.store.upkeep.timers import TIMERS, Timer, timer_key
from calque.values import size_text

BELIEVED = 10.0
"""Seconds that a count is shown again before everything is counted anew."""
HOURS = 7 * 24
_WEEK_US = int(timedelta(days=7).total_seconds() * 1_000_000)
_SIZES = ("objects", "logical_bytes", "physical_bytes", "saved_bytes")


class StoreFigures:
    """What the overview tells of a store. Safe to share between threads."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._counted: tuple[float, dict[str, int]] | None = None

    def overview(self) -> dict[str, Any]:
        database = self._store.endpoint.database
        status = status_of(database)
        usage = read_usage(database, "store", database.clock() - _WEEK_US, database.clock())
        tallied = last_run(database, "tally")
        return {
            "folder": str(self._store.folder),
            **(_sizes_of(usage[-1]) if usage else self._count(database)),
            "counted_at": moment(tallied.finished_at) if usage and tallied else None,
            "nodes": dict(Counter(each.state for each in fresh_nodes(database))),
            "node_count": len(self._store.own_nodes()),
            "repair_queue": count_repairs(database),
            "problems": _problems(status, self._store),
            "services": [describe_service(database, timer) for timer in TIMERS],
            "charts": _charts(usage),
        }

    def figures(self) -> dict[str, object]:
        """What is told live."""
        return {"repair queue": count_repairs(self._store.endpoint.database)}

    def _count(self, database: Database) -> dict[str, int]:
        """Before the first tally: counted now, and believed for a moment, since it reads all."""
        with self._lock:
            if self._counted is None or time.monotonic() - self._counted[0] > BELIEVED:
                # In this process: nobody expects a look at a page to start Spark.
                report = count_usage(database, ScanOptions(engine="local"))
                sizes = {name: int(getattr(report, name)) for name in _SIZES}
                self._counted = (time.monotonic(), sizes)
            return self._counted[1]


def describe_service(database: Database, timer: Timer) -> dict[str, Any]:
    """When a service ran last, by its timer or a command, and when it is due."""
    runs = [last_run(database, name) for name in (timer.service, timer_key(timer))]
    last = max((each.finished_at for each in runs if each is not None), default=None)
    by_timer = runs[1]
    due = None if by_timer is None else by_timer.finished_at + int(timer.every * 1_000_000)
    return {
        "service": timer.service,
        "every_seconds": timer.every,
        "last_run": moment(last),
        "due": moment(due),
        "report": runs[0].report if runs[0] is not None else None,
    }


def fresh_nodes(database: Database) -> list[Any]:
    """The nodes as the database has them now."""
    nodes = Nodes(database)
    nodes.refresh()
    return list(nodes.all())


def _sizes_of(row: UsageRow) -> dict[str, int]:
    return {name: int(getattr(row, name)) for name in _SIZES}


def _problems(status: StoreStatus, store: EmbeddedStore) -> list[dict[str, str]]:
    advice = f"{status.advice} {shell_line(str(store.folder))}" if status.advice else ""
    return [{"what": each, "advice": advice} for each in status.problems]


def _charts(usage: list[UsageRow]) -> list[Chart]:
    """Bytes saved over the last week; two hours are the least that shows anything."""
    if len(usage) < 2:
        return []
    shown = usage[-HOURS:]
    return [
        Chart(
            "Bytes saved by copies, hour by hour",
            [
                (_hour(each.recorded_at), each.saved_bytes, size_text(each.saved_bytes))
                for each in shown
            ],
        )
    ]


def _hour(at: int) -> str:
    found = moment(at - at % HOUR_US)
    assert found is not None
    return found.strftime("%m-%d %H:00")
