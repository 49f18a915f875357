"""``calque jobs``: runs over trees, under way or left unfinished."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calque.cli.flags.metrics_flags import MetricsWanted, sheet_of_metrics
from calque.cli.flags.shared_flags import with_sheet
from calque.cli.output import PARTLY, JsonFlag, as_json, record, say, table
from calque.errors import InvalidInput

if TYPE_CHECKING:
    from calque.ledger.job_record import Job

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    help="Runs over trees: what is under way, what was left unfinished, how to go on.",
)

JobName = Annotated[
    str, typer.Argument(metavar="JOB", help="The job's id, or enough of its beginning.")
]


@app.command()
def ls(json: JsonFlag = False) -> None:
    """List jobs, the youngest first; they are kept for 30 days.

    calque jobs ls
    """
    from calque.ledger.jobs import list_jobs
    from calque.transfer.jobs.open_job import configured_ledger

    with configured_ledger() as ledger:
        now = ledger.shared_now()
        found = [_summary(job, now) for job in list_jobs(ledger)]
    if json:
        as_json(found)
        return
    columns = ("job", "state", "kind", "copied", "deleted", "failed", "started", "source", "target")
    table(columns, ([job[name] for name in columns] for job in found))


@app.command()
def show(job: JobName, json: JsonFlag = False) -> None:
    """Show a job: how far it is, what is left of it, what failed.

    calque jobs show 20261115T101316
    """
    from calque.ledger.job_progress import copies_of, failures_of, spans_of
    from calque.ledger.jobs import find_job
    from calque.transfer.jobs.open_job import configured_ledger

    with configured_ledger() as ledger:
        found = find_job(ledger, job)
        summary = _summary(found, ledger.shared_now())
        spans = spans_of(ledger, found.job_id)
        copies = copies_of(ledger, found.job_id)
        failures = failures_of(ledger, found.job_id)
    summary |= {
        "ranges_left": [
            [os.fsdecode(span.after), None if span.up_to is None else os.fsdecode(span.up_to)]
            for span in spans
        ],
        "large_copies": sorted(os.fsdecode(path) for _, path in copies),
        "failures": [
            {"path": os.fsdecode(each.path), "error": each.error, "message": each.message}
            for each in failures
        ],
    }
    if json:
        as_json({**summary, "request": dict(found.request), "totals": dict(found.totals)})
        return
    record({**summary, "ranges_left": len(spans), "failures": len(failures)})
    for each in failures[:100]:
        say(f"{each.error}: {os.fsdecode(each.path)}: {each.message or ''}")
    if not found.is_over and summary["state"] != "RUNNING":
        say(f"go on with: calque jobs resume {found.job_id}")


@app.command()
@with_sheet(sheet_of_metrics)
def resume(
    job: JobName,
    metrics: MetricsWanted,
    concurrent: Annotated[
        int | None, typer.Option("--concurrent", "-c", help="Requests in flight, over the tree.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deleting.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    json: JsonFlag = False,
) -> None:
    """Go on with a job where it was left: what was done is not done again.

    Credentials are found anew, as for any command.

    calque jobs resume 20261115T101316-e202ddb8
    """
    from calque.cli.trees import remove_and_show, run_and_show
    from calque.ledger.jobs import find_job
    from calque.transfer.jobs.open_job import configured_ledger
    from calque.transfer.request.tree_request import TreeRequest

    with configured_ledger() as ledger:
        found = find_job(ledger, job)
    if found.is_over:
        raise InvalidInput(
            f"job {found.job_id} is over: there is nothing left to resume",
            hint="Run the command again; or only what failed, by --from-report.",
        )
    request = TreeRequest.from_json(found.request)
    if concurrent is not None:
        request = replace(request, options=replace(request.options, concurrent=concurrent))
    if request.kind == "rm":
        remove_and_show(request, yes=yes, quiet=quiet, json=json, left_job=found.job_id)
        return
    run_and_show(request, yes=yes, quiet=quiet, json=json, metrics=metrics, left_job=found.job_id)


@app.command()
def stop(job: JobName) -> None:
    """Stop a job that runs, here or elsewhere; it can be gone on with.

    The process that is at it notices within a second or two. What it copied stays.

    calque jobs stop 20261115T101316-e202ddb8
    """
    from calque.ledger.jobs import stop_job
    from calque.transfer.jobs.open_job import configured_ledger

    with configured_ledger() as ledger:
        stopped = stop_job(ledger, job, "calque jobs stop").job_id
    say(f"stopped job {stopped}; go on with: calque jobs resume {stopped}")


@app.command()
def abort(job: JobName, json: JsonFlag = False) -> None:
    """Give up a job that was left: parts of its large copies are removed, and it is forgotten.

    What it copied whole stays. Credentials are found anew, as for any command.

    calque jobs abort 20261115T101316-e202ddb8
    """
    from calque.transfer.jobs.abort_job import abort_job
    from calque.transfer.jobs.open_job import configured_ledger

    with configured_ledger() as ledger:
        done = abort_job(ledger, job)
    if json:
        as_json({"job": done.job.job_id, "cleared": done.cleared, "left": list(done.left)})
    else:
        say(f"gave up job {done.job.job_id}; parts of {done.cleared} copies were removed")
        for each in done.left:
            say(f"parts are left: {each}")
    if done.left:
        say(f"remove them with: calque sweep {shlex.quote(done.job.target)}")
        raise typer.Exit(PARTLY)


@app.command()
def rm(jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Their ids.")]) -> None:
    """Forget jobs that nobody is at. What they copied stays; `calque sweep` removes parts.

    calque jobs rm 20261115T101316-e202ddb8
    """
    from calque.ledger.jobs import remove_job
    from calque.transfer.jobs.open_job import configured_ledger

    with configured_ledger() as ledger:
        for job in jobs:
            say(f"forgot job {remove_job(ledger, job).job_id}")


def _summary(job: Job, now: int) -> dict[str, Any]:
    died = job.state == "RUNNING" and not job.is_alive(now)
    totals = job.totals
    return {
        "job": job.job_id,
        "state": "DIED" if died else job.state,
        "kind": job.kind,
        "source": job.source,
        "target": job.target,
        "copied": totals.get("copied", {}).get("objects", 0),
        "deleted": totals.get("deleted", {}).get("objects", 0),
        "failed": totals.get("failed", {}).get("objects", 0),
        "started": datetime.fromtimestamp(job.started_at / 1e6, UTC),
        "updated": datetime.fromtimestamp(job.updated_at / 1e6, UTC),
        "report": job.report,
        "message": job.message,
    }
