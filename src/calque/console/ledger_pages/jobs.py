"""Copies and trees: the jobs of the ledger, under way, left unfinished, or over."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request

from calque.console.guard import BASE
from calque.console.ledger_pages.job_runs import JobRuns
from calque.console.ledger_pages.single_copies import SingleCopies
from calque.console.page import Page, asked_for
from calque.console.text import moment, shell_line
from calque.errors import ConditionNotMatch, NotFound, Unsupported
from calque.ledger import Ledger
from calque.ledger.job_progress import copies_of, failures_of, spans_of
from calque.ledger.job_record import Job
from calque.ledger.jobs import find_job, list_jobs, remove_job, stop_job
from calque.ledger.lease import is_of_this_host
from calque.transfer.jobs.abort_job import abort_job
from calque.values import size_text

JOBS_SHOWN = 200
FAILURES_SHOWN = 200


class JobPages:
    """The pages, over whatever ledger there is when they are asked for."""

    def __init__(
        self, ledger: Callable[[], Ledger | None], runs: JobRuns, copies: SingleCopies
    ) -> None:
        self._ledger = ledger
        self._runs = runs
        self._copies = copies

    def show_jobs(self, request: Request) -> Page:
        """All copies and jobs, the youngest first."""
        ledger = self._ledger()
        found: list[dict[str, Any]] = []
        if ledger is not None:
            now = ledger.shared_now()
            found = [describe_job(job, now) for job in list_jobs(ledger, limit=JOBS_SHOWN)]
        data = {"jobs": found, "copies": self._copies.describe_all()}
        return Page("jobs.html", "Copies and trees", data, "calque jobs ls")

    def show_job(self, request: Request) -> Page:
        """One job: how far it is, what is left of it, what failed."""
        ledger = self._require_ledger()
        job = find_job(ledger, asked_for(request, "id"))
        failures = failures_of(ledger, job.job_id)
        data = {
            "job": describe_job(job, ledger.shared_now()),
            "begun_here": self._runs.is_begun(job.job_id),
            "failure": self._runs.failure(job.job_id),
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

    def resume(self, request: Request, form: FormData) -> str:
        """Go on with a job that was left, by a process where the console runs."""
        ledger = self._require_ledger()
        job = self._named(ledger, request)
        told = describe_job(job, ledger.shared_now())
        if not told["resume"]:
            raise ConditionNotMatch(f"job {job.job_id} was not left unfinished")
        if not told["may_resume_here"]:
            raise Unsupported(
                f"job {job.job_id} is about files of another machine",
                hint=f"Go on with it there: {told['resume']}",
            )
        self._runs.resume(job.job_id)
        return _address_of(job)

    def stop(self, request: Request, form: FormData) -> str:
        """Stop a job that runs, wherever; it can be gone on with."""
        ledger = self._require_ledger()
        return _address_of(stop_job(ledger, self._named(ledger, request).job_id, "the console"))

    def abort(self, request: Request, form: FormData) -> str | Page:
        """Give up a job that was left: what its large copies left is removed, and it is gone."""
        ledger = self._require_ledger()
        done = abort_job(ledger, self._named(ledger, request).job_id)
        if not done.left:
            return f"{BASE}/jobs"
        data = {"job": done.job.job_id, "cleared": done.cleared, "left": list(done.left)}
        command = shell_line("calque", "sweep", done.job.target)
        return Page("job_aborted.html", f"Job {done.job.job_id} was given up", data, command)

    def forget(self, request: Request, form: FormData) -> str:
        """Forget a job that nobody is at; what it copied stays."""
        ledger = self._require_ledger()
        remove_job(ledger, self._named(ledger, request).job_id)
        return f"{BASE}/jobs"

    def _named(self, ledger: Ledger, request: Request) -> Job:
        """The job by its whole id: what is changed is not guessed from a beginning."""
        asked = asked_for(request, "id")
        job = find_job(ledger, asked)
        if job.job_id != asked:
            raise NotFound(f"there is no job {asked!r}", hint="`calque jobs ls` shows all.")
        return job

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
    was_left = died or job.state == "STOPPED"
    is_troubled = job.state == "PARTLY"
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
        "deleted": int(job.totals.get("deleted", {}).get("objects", 0)),
        "failed": int(job.totals.get("failed", {}).get("objects", 0)),
        "who": _who(job.owner),
        "started": moment(job.started_at),
        "updated": moment(job.updated_at),
        "report": job.report,
        "message": job.message,
        "resume": shell_line("calque", "jobs", "resume", job.job_id) if was_left else None,
        "advice": shell_line("calque", "jobs", "show", job.job_id) if is_troubled else None,
        "may_resume_here": was_left and not _is_of_another_machine(job),
        "may_stop": job.is_alive(now),
        "may_forget": not job.is_alive(now),
    }


def live_figures(job: Job, now: int) -> dict[str, object]:
    """What of a job changes while one looks, by the names that pages have for it."""
    told = describe_job(job, now)
    speed = told["bytes_a_second"]
    return {
        f"job {job.job_id} state": told["state"],
        f"job {job.job_id} copied": told["copied"],
        f"job {job.job_id} deleted": told["deleted"],
        f"job {job.job_id} failed": told["failed"],
        f"job {job.job_id} bytes": size_text(told["bytes"]),
        f"job {job.job_id} speed": "—" if speed is None else size_text(speed),
    }


def _is_of_another_machine(job: Job) -> bool:
    """Whether it names files of this machine that another machine meant: the same path may be
    something else here, and would be overwritten or cleared away."""
    names = [*job.request.get("sources", ()), job.request.get("target", "")]
    is_local = any("://" not in each or each.startswith(("file:", "fs:")) for each in names)
    return is_local and not is_of_this_host(job.owner)


def _who(owner: str) -> str:
    """Host and process out of the name that a process has in the ledger."""
    machine, _, rest = owner.partition("/")
    process = rest.partition("/")[0]
    return f"{machine.partition(':')[0]}, process {process}" if process else owner


def _address_of(job: Job) -> str:
    return f"{BASE}/job?id={job.job_id}"
