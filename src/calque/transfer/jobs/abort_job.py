"""Give a job up: what its large copies have left at the target is removed, and it is forgotten."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from calque.errors import CalqueError
from calque.ledger import Ledger
from calque.ledger.job_progress import LEASE_SECONDS, copies_of
from calque.ledger.job_record import Job
from calque.ledger.jobs import end_job, find_job, remove_job, take_job
from calque.operator.checkpoint import Checkpoint
from calque.operator.copy import abort_copy
from calque.operator.layers import default_layers
from calque.transfer.jobs.journal import new_owner
from calque.transfer.plan.pairing import pair_up
from calque.transfer.plan.places import open_target
from calque.transfer.plan.plan import Trees
from calque.transfer.request.tree_request import TreeRequest


@dataclass(frozen=True, slots=True)
class AbortedJob:
    """A job that is no more; what it had copied whole stays."""

    job: Job
    cleared: int
    """Large copies whose parts were removed."""
    left: tuple[str, ...] = ()
    """Paths whose parts could not be removed, each with the reason; a sweep finds them."""


def abort_job(ledger: Ledger, job_id: str) -> AbortedJob:
    """Give up a job that nobody is at. ConditionNotMatch while one is, or where it is over."""
    # Held while it is cleared: nobody may go on with a copy whose parts are being removed.
    job = take_job(ledger, find_job(ledger, job_id).job_id, new_owner(), LEASE_SECONDS)
    try:
        copies = {key: text for key, text in copies_of(ledger, job.job_id).items() if text}
        cleared, left = _clear(job, copies) if copies else (0, ())
    finally:
        end_job(ledger, job, "STOPPED", "it was given up")
    remove_job(ledger, job.job_id)
    return AbortedJob(job, cleared, left)


def _clear(job: Job, copies: Mapping[tuple[int, bytes], str]) -> tuple[int, tuple[str, ...]]:
    try:
        trees = _open_trees(job)
    except CalqueError as error:
        return 0, tuple(f"{os.fsdecode(path)}: {error}" for _, path in copies)
    cleared, left = 0, []
    try:
        for (tree, path), text in copies.items():
            try:
                _abort_copy(trees[tree], text)
                cleared += 1
            except CalqueError as error:
                left.append(f"{os.fsdecode(path)}: {error}")
    finally:
        for each in trees:
            each.source.close()
            each.target.close()
    return cleared, tuple(left)


def _open_trees(job: Job) -> list[Trees]:
    request, layers = TreeRequest.from_json(job.request), default_layers()
    target = open_target(request.target, request.target_options, layers)
    return pair_up(request, target, layers, find_left=lambda trees, gone: job.request.get("named"))


def _abort_copy(trees: Trees, text: str) -> None:
    abort_copy(trees.source.service, trees.target.service, Checkpoint.from_json(text))
