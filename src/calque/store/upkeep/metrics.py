"""What upkeep counts, in the format of Prometheus. No label is the name of an object or bucket."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from calque.store.metabase.engine.database import Database
from calque.store.metabase.upkeep.last_runs import last_run
from calque.store.upkeep.audit import AuditReport
from calque.store.upkeep.gc import GcReport
from calque.store.upkeep.repair import RepairReport
from calque.store.upkeep.scan import ScanReport
from calque.store.upkeep.tally import TallyReport


class UpkeepMetrics:
    """The numbers of the last runs, beside those of the satellite."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._all: list[Gauge | Counter] = []

        def gauge(name: str, about: str, labels: tuple[str, ...] = ()) -> Gauge:
            made = Gauge(name, about, labels, registry=registry)
            self._all.append(made)
            return made

        def counter(name: str, about: str, labels: tuple[str, ...] = ()) -> Counter:
            made = Counter(name, about, labels, registry=registry)
            self._all.append(made)
            return made

        self._rows = gauge("scan_rows", "Segments of the last scan")
        self._seconds = gauge("scan_seconds", "Time of the last scan")
        self._age = gauge("scan_snapshot_age_seconds", "Age of the last snapshot that was scanned")
        self._trashed = counter("gc_pieces_trashed", "Pieces that went to the trash")
        self._filters = gauge("gc_filter_bytes", "Size of the filters of the last run")
        self._audits = counter("audit_results", "Answers of nodes to audits", ("result",))
        self._queue = gauge("repair_queue", "Segments that wait for repair")
        self._lost = gauge("segments_lost", "Segments with too few pieces left")
        self._health = gauge("segments_by_health", "Segments by their health", ("health",))
        self._logical = gauge("logical_bytes", "Bytes of all objects, copies in full")
        self._physical = gauge("physical_bytes", "Bytes that are kept, before redundancy")
        self._saved = gauge("saved_bytes", "Bytes that copies share")
        self._nodes = gauge("nodes_by_state", "Nodes by their state", ("state",))
        self._failures = counter("upkeep_failures", "Runs that failed", ("service",))
        for result in ("good", "wrong", "silent"):
            self._audits.labels(result)
        for health in ("whole", "reduced", "injured", "lost"):
            self._health.labels(health)

    def close(self) -> None:
        """Take them out of the registry."""
        for each in self._all:
            self._registry.unregister(each)

    def remember(self, database: Database) -> None:
        """Begin with what the last runs found, in whichever process."""
        repaired, tallied = last_run(database, "repair"), last_run(database, "tally")
        if repaired is not None:
            self._lost.set(repaired.report["lost_segments"])
            self._queue.set(repaired.report["queue"])
            for health, count in repaired.report["by_health"].items():
                self._health.labels(health).set(count)
        if tallied is not None:
            self._logical.set(tallied.report["logical_bytes"])
            self._physical.set(tallied.report["physical_bytes"])
            self._saved.set(tallied.report["saved_bytes"])

    def count_scan(self, scan: ScanReport, now: int) -> None:
        self._rows.set(scan.rows)
        self._seconds.set(scan.seconds)
        self._age.set((now - scan.taken_at) / 1_000_000)

    def count_gc(self, report: GcReport) -> None:
        self._trashed.inc(report.trashed)
        self._filters.set(report.filter_bytes)

    def count_audit(self, report: AuditReport) -> None:
        for each in report.nodes:
            self._audits.labels("good").inc(each.good)
            self._audits.labels("wrong").inc(each.wrong)
            self._audits.labels("silent").inc(each.silent)

    def count_repair(self, report: RepairReport) -> None:
        self._queue.set(report.queue)
        self._lost.set(report.lost_segments)
        for health in ("whole", "reduced", "injured", "lost"):
            self._health.labels(health).set(report.by_health.get(health, 0))

    def count_tally(self, report: TallyReport) -> None:
        self._logical.set(report.logical_bytes)
        self._physical.set(report.physical_bytes)
        self._saved.set(report.saved_bytes)

    def count_nodes(self, states: dict[str, int]) -> None:
        for state in ("ok", "silent", "failing", "exiting", "gone"):
            self._nodes.labels(state).set(states.get(state, 0))

    def count_failure(self, service: str) -> None:
        self._failures.labels(service).inc()
