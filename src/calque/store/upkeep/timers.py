"""Everything that looks after a store, each in its time, inside a server.

When a service ran last is in the metabase: a server that is started every morning still collects
garbage once a day, and two servers of one store do not do it twice.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calque.errors import Aborted, CalqueError, FailedPrecondition
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.upkeep.last_runs import last_run, note_run
from calque.store.upkeep.audit import audit_store
from calque.store.upkeep.exit import resume_exits
from calque.store.upkeep.expire import sweep_store
from calque.store.upkeep.fsck import check_store, note_findings
from calque.store.upkeep.gc import collect_store
from calque.store.upkeep.metrics import UpkeepMetrics
from calque.store.upkeep.node_states import check_nodes
from calque.store.upkeep.repair import repair_store
from calque.store.upkeep.scan import Over
from calque.store.upkeep.tally import tally_store

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
_LOOK_EVERY = 10.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timer:
    """A service that runs every so many seconds."""

    service: str
    every: float
    run: Callable[[EmbeddedStore, UpkeepMetrics, Over], object]


def _expire(store: EmbeddedStore, metrics: UpkeepMetrics, over: Over) -> object:
    return sweep_store(store, over)


def _nodes(store: EmbeddedStore, metrics: UpkeepMetrics, over: Over) -> object:
    reports = check_nodes(store)
    metrics.count_nodes(Counter(each.state for each in reports))
    return reports


def _tally(store: EmbeddedStore, metrics: UpkeepMetrics, over: Over) -> object:
    report = tally_store(store, over=over)
    metrics.count_tally(report)
    metrics.count_scan(report.scan, store.endpoint.database.clock())
    return report


def _repair(store: EmbeddedStore, metrics: UpkeepMetrics, over: Over) -> object:
    report = repair_store(store, over=over)
    metrics.count_repair(report)
    metrics.count_scan(report.scan, store.endpoint.database.clock())
    return report


def _audit(store: EmbeddedStore, metrics: UpkeepMetrics, over: Over) -> object:
    report = audit_store(store, over=over)
    metrics.count_audit(report)
    metrics.count_scan(report.scan, store.endpoint.database.clock())
    return report


def _exit(store: EmbeddedStore, metrics: UpkeepMetrics, over: Over) -> object:
    return resume_exits(store, over)


def _gc(store: EmbeddedStore, metrics: UpkeepMetrics, over: Over) -> object:
    report = collect_store(store, over=over)
    metrics.count_gc(report)
    metrics.count_scan(report.scan, store.endpoint.database.clock())
    return report


def _fsck(store: EmbeddedStore, metrics: UpkeepMetrics, over: Over) -> object:
    findings = check_store(store, over=over)
    note_findings(store, findings)
    for each in findings:
        _log.error("fsck: %s: %s", each.kind, each.where)
    return findings


TIMERS = (
    Timer("nodes", 5 * MINUTE, _nodes),
    Timer("expire", HOUR, _expire),
    Timer("tally", HOUR, _tally),
    Timer("repair", HOUR, _repair),
    Timer("audit", HOUR, _audit),
    Timer("exit", HOUR, _exit),
    Timer("gc", DAY, _gc),
    Timer("fsck", 7 * DAY, _fsck),
)


class Timers(threading.Thread):
    """Runs what is due, one after another, until ``over`` is set."""

    def __init__(
        self, store: EmbeddedStore, over: threading.Event, timers: Sequence[Timer] = TIMERS
    ) -> None:
        super().__init__(name="upkeep", daemon=True)
        self._store, self._over, self._timers = store, over, timers
        self._metrics = UpkeepMetrics(store.endpoint.metrics.registry)
        self._began = store.endpoint.database.clock()
        self._tried: dict[str, int] = {}
        self._metrics.remember(store.endpoint.database)

    def close(self) -> None:
        """Take the numbers out of the registry: another server of this store brings its own."""
        self._metrics.close()

    def run(self) -> None:
        shortest = min((each.every for each in self._timers), default=_LOOK_EVERY)
        while not self._over.wait(min(shortest, _LOOK_EVERY)):
            for timer in self._timers:
                if self._over.is_set():
                    return
                self._run_if_due(timer)

    def _run_if_due(self, timer: Timer) -> None:
        try:
            if self._is_due(timer):
                self._tried[timer.service] = self._store.endpoint.database.clock()
                timer.run(self._store, self._metrics, self._over.is_set)
                note_run(self._store.endpoint.database, timer_key(timer), {})
        except FailedPrecondition as error:  # another process does it, or must be waited for
            _log.info("%s is left out: %s", timer.service, error)
        except Aborted as error:  # the server is being stopped
            _log.info("%s: %s", timer.service, error)
        except CalqueError as error:  # the next time may be better
            self._metrics.count_failure(timer.service)
            _log.warning("%s failed: %s", timer.service, error)
        except Exception:  # a mistake of ours must not end all that is to come
            self._metrics.count_failure(timer.service)
            _log.exception("%s failed", timer.service)

    def _is_due(self, timer: Timer) -> bool:
        """Since it ran last, in whichever process, or was tried here, or this server began."""
        database = self._store.endpoint.database
        found, now = last_run(database, timer_key(timer)), database.clock()
        ran = self._began if found is None else found.finished_at
        # By the amount: a run of tomorrow was noted before the clock was put back.
        return all(
            abs(now - at) >= timer.every * 1_000_000
            for at in (ran, self._tried.get(timer.service, 0))
        )


def timer_key(timer: Timer) -> str:
    """Under what name its runs are noted, beside what the service itself notes."""
    return f"timer {timer.service}"
