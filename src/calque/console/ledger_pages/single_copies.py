"""Copies of one object that this user makes, or has left: shown, gone on with, given up."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request

from calque.console.guard import BASE
from calque.console.ledger_pages.job_runs import JobRuns
from calque.console.page import asked_for
from calque.console.text import moment, shell_line
from calque.errors import ConditionNotMatch
from calque.ledger.job_record import as_text
from calque.transfer.jobs.single_copies import SingleCopy, find_copy, list_copies
from calque.values import size_text


class SingleCopies:
    """What the page of copies shows of them, and its buttons."""

    def __init__(self, runs: JobRuns) -> None:
        self._runs = runs

    def describe_all(self) -> list[dict[str, Any]]:
        return [
            {
                **describe_copy(copy),
                "begun_here": self._runs.is_begun(copy.copy_id),
                "failure": self._runs.failure(copy.copy_id),
            }
            for copy in list_copies()
        ]

    def resume(self, request: Request, form: FormData) -> str:
        """Go on with a copy that was left, by the command that began it."""
        copy = _find_left(request)
        self._runs.begin(copy.copy_id, _command(copy, "--resume"), folder=copy.folder)
        return f"{BASE}/jobs"

    def abort(self, request: Request, form: FormData) -> str:
        """Give up a copy that was left: what it left at the target is removed."""
        copy = _find_left(request)
        self._runs.begin(copy.copy_id, _command(copy, "--abort"), folder=copy.folder)
        return f"{BASE}/jobs"


def describe_copy(copy: SingleCopy) -> dict[str, Any]:
    """A copy as it was last told."""
    speed = copy.bytes_a_second
    was_left = copy.state == "STOPPED"
    return {
        "copy": copy.copy_id,
        "state": copy.state,
        "source": as_text(copy.source),
        "target": as_text(copy.target),
        "bytes": copy.done,
        "total": copy.total,
        "bytes_a_second": None if speed is None else int(speed),
        "who": f"process {copy.process}",
        "started": moment(int(copy.started * 1e6)),
        "resume": as_text(shell_line("calque", *copy.command)) if was_left else None,
        "folder": as_text(copy.folder),
    }


def figures_of_copies() -> dict[str, object]:
    """What of them changes while one looks, by the names that the page has for it."""
    figures: dict[str, object] = {}
    for copy in list_copies():
        speed = copy.bytes_a_second
        figures |= {
            f"copy {copy.copy_id} state": copy.state,
            f"copy {copy.copy_id} bytes": size_text(copy.done),
            f"copy {copy.copy_id} speed": "—" if speed is None else size_text(int(speed)),
        }
    return figures


def _find_left(request: Request) -> SingleCopy:
    copy = find_copy(asked_for(request, "id"))
    if copy.state != "STOPPED":
        raise ConditionNotMatch("this copy was not left: it is being made", hint="Wait for it.")
    return copy


def _command(copy: SingleCopy, verb: str) -> list[str]:
    """What began it, to this end. In the place of its flag: behind ``--`` all words are names."""
    place = copy.command.index("--resume")
    return [*copy.command[:place], verb, "--json", *copy.command[place + 1 :]]
