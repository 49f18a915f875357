"""Copies and trees: the jobs of the ledger, under way, left unfinished, or over."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request

from calque.console.guard import BASE
from calque.console.page import Page
from calque.console.text import moment, shell_line
from calque.errors import NotFound
from calque.ledger import Ledger
from calque.ledger.job_progress import copies_of, failures_of, spans_of
from calque.ledger.job_record import Job
from calque.ledger.jobs import find_job, list_jobs, remove_job

JOBS_SHOWN = 200
FAILURES_SHOWN = 200


class JobPages:
    """The pages, over whatever ledger there is when they are asked for."""

    def __init__(self, ledger: Callable[[], Ledger | None]) -> None:
        self._ledger = ledger

    def show_jobs(self, request: Request) -> Page:
        """All jobs, the youngest first."""
        ledger = self._ledger()
        found: list[dict[str, Any]] = []
        if ledger is not None:
            now = ledger.shared_now()
            found = [describe_job(job, now) for job in list_jobs(ledger)[:JOBS_SHOWN]]
        return Page("jobs.html", "Copies and trees", {"jobs": found}, "calque jobs ls")

    def show_job(self, request: Request) -> Page:
        """One job: how far it is, what is left of it, what failed."""
        ledger = self._require_ledger()
        job = find_job(ledger, request.query_params.get("id", ""))
        failures = failures_of(ledger, job.job_id)
        data = {
            "job": describe_job(job, ledger.shared_now()),
            "totals": dict(job.totals),
            "ranges_left": len(spans_of(ledger, job.job_id)),
            "large_copies": sorted(os.fsdecode(path) for _, path in copies_of(ledger, job.job_id)),
            "failed": len(failures),
            "failures": [
                {"path": os.fsdecode(each.path), "error": each.error, "message": each.message}
                for each in failures[:FAILURES_SHOWN]
            ],
        }
        return Page("job.html", f"Job {job.job_id}", data, f"calque jobs show {job.job_id}")

    def forget(self, request: Request, form: FormData) -> str:
        """Forget a job that nobody is at; what it copied stays."""
        ledger = self._require_ledger()
        remove_job(ledger, find_job(ledger, request.query_params.get("id", "")).job_id)
        return f"{BASE}/jobs"

    def _require_ledger(self) -> Ledger:
        ledger = self._ledger()
        if ledger is None:
            raise NotFound("there is no job: no ledger was made yet")
        return ledger


def describe_job(job: Job, now: int) -> dict[str, Any]:
    """A job, how fast it was, and the command that goes on with it."""
    died = job.state == "RUNNING" and not job.is_alive(now)
    copied = job.totals.get("copied", {})
    until = job.finished_at or job.updated_at
    seconds = max(until - job.started_at, 0) / 1e6
    moved = int(copied.get("bytes", 0))
    may_resume = died or job.state == "STOPPED"
    return {
        "job": job.job_id,
        "state": "DIED" if died else job.state,
        "kind": job.kind,
        "phase": job.phase,
        "source": job.source,
        "target": job.target,
        "copied": int(copied.get("objects", 0)),
        "bytes": moved,
        "bytes_a_second": int(moved / seconds) if seconds else None,
        "failed": int(job.totals.get("failed", {}).get("objects", 0)),
        "who": job.owner,
        "started": moment(job.started_at),
        "updated": moment(job.updated_at),
        "report": job.report,
        "message": job.message,
        "resume": shell_line("calque", "jobs", "resume", job.job_id) if may_resume else None,
        "may_forget": not job.is_alive(now),
    }
