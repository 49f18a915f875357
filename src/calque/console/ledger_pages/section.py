"""The pages of the ledger together, and what they add to the overview."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from calque.console.ledger_pages.job_runs import JobRuns
from calque.console.ledger_pages.jobs import JOBS_SHOWN, JobPages, describe_job, live_figures
from calque.console.ledger_pages.loads import LoadPages, charts_of, describe_load
from calque.console.ledger_pages.single_copies import SingleCopies, figures_of_copies
from calque.console.site import Section
from calque.ledger import Ledger
from calque.ledger.jobs import jobs_at_work, list_jobs
from calque.ledger.loaded_tables import list_loaded_tables
from calque.ledger.recent import alive_or_dead, loads_by_day, open_loads, recent_loads

DAYS = 14
_DAY_US = int(timedelta(days=1).total_seconds() * 1_000_000)
_LATELY_US = 60 * 1_000_000
"""Jobs that ended so lately are told live, too: pages that show them have to see their end."""
NOTHING: Mapping[str, str] = {}

OpenLedger = Callable[[], Ledger | None]


class LedgerOnSight:
    """The configured ledger; where there is none yet it is looked for again at each question."""

    def __init__(self, open_ledger: OpenLedger) -> None:
        self._open = open_ledger
        self._lock = threading.Lock()
        self._ledger: Ledger | None = None

    def get(self) -> Ledger | None:
        with self._lock:
            if self._ledger is None:
                self._ledger = self._open()
            return self._ledger

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()


def ledger_section(open_ledger: OpenLedger, environment: Mapping[str, str] = NOTHING) -> Section:
    """Loads and jobs of the ledger that ``open_ledger`` gives, once there is one.

    ``environment`` is what tells a command about that ledger, beside what this process has.
    """
    sight, runs = LedgerOnSight(open_ledger), JobRuns(environment)
    copies = SingleCopies(runs)
    loads, jobs = LoadPages(sight.get), JobPages(sight.get, runs, copies)

    def close() -> None:
        runs.close()
        sight.close()

    return Section(
        name="ledger",
        links=[("Loads", "loads"), ("Copies and trees", "jobs")],
        views={
            "loads": loads.show_loads,
            "load": loads.show_load,
            "jobs": jobs.show_jobs,
            "job": jobs.show_job,
        },
        changes={
            "job/resume": jobs.resume,
            "job/stop": jobs.stop,
            "job/abort": jobs.abort,
            "job/forget": jobs.forget,
            "copy/resume": copies.resume,
            "copy/abort": copies.abort,
        },
        overview=lambda: _overview(sight.get()),
        figures=lambda: {**figures_of_copies(), **_figures(sight.get())},
        close=close,
    )


def _overview(ledger: Ledger | None) -> dict[str, Any]:
    if ledger is None:
        return {"where": None}
    now = ledger.shared_now()
    at_work = alive_or_dead(ledger)
    troubled = [each for each in open_loads(ledger) if each.load_id in at_work.dead]
    troubled += recent_loads(ledger, with_trouble=True, since=now - _DAY_US, limit=20)
    jobs = list_jobs(ledger, limit=JOBS_SHOWN)
    found = [describe_job(job, now) for job in jobs]
    return {
        "where": ledger.where,
        "tables": len(list_loaded_tables(ledger)),
        "loads_running": len(at_work.alive),
        "jobs_running": sum(each["state"] == "RUNNING" for each in found),
        "last_loads": [describe_load(each, at_work) for each in recent_loads(ledger, limit=5)],
        "charts": charts_of(loads_by_day(ledger, DAYS)),
        "troubled_loads": [describe_load(each, at_work) for each in troubled],
        "troubled_jobs": [
            describe_job(job, now)
            for job in jobs
            if job.state == "PARTLY" and (job.finished_at or 0) >= now - _DAY_US
        ][:20],
        "left_jobs": [each for each in found if each["resume"]][:20],
    }


def _figures(ledger: Ledger | None) -> dict[str, object]:
    if ledger is None:
        return {}
    now = ledger.shared_now()
    running = len(alive_or_dead(ledger).alive)
    figures: dict[str, object] = {"loads running": running, "jobs running": 0}
    for job in jobs_at_work(ledger, now - _LATELY_US):
        figures |= live_figures(job, now)
        figures["jobs running"] += job.is_alive(now)  # type: ignore[operator]
    return figures
