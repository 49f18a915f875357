"""What is deleted at a target: noted while the trees are compared, done last and only then.

Nothing is deleted after an error, of a plan that was not complete, for a source without anything in
it, or beyond the bound. Each delete is of the object that was listed: one that was rewritten since
survives.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice

from calque import faults, tracing
from calque.errors import (
    CalqueError,
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    PermissionDenied,
)
from calque.operator.options import DeleteOptions
from calque.operator.service import DeletingMany, Directories, Service
from calque.transfer.model import Decision, Row
from calque.transfer.plan.side import Side, stat_again
from calque.transfer.report.rows import failed_row, predicted_row
from calque.transfer.run.backup import Backup
from calque.transfer.run.run_context import Shared
from calque.values import Metadata

_TOGETHER = 500


class Spool:
    """Decisions that wait on disk: their number is that of the target's objects, at worst."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="calque-deletes-")  # noqa: SIM115
        self._waiting: list[Decision] = []
        self.count = 0
        self.bytes = 0
        self.first: list[str] = []

    def add(self, decision: Decision) -> None:
        self.count += 1
        self.bytes += decision.size
        if len(self.first) < 3:
            self.first.append(decision.path)
        self._waiting.append(decision)
        if len(self._waiting) >= _TOGETHER:
            self._write()

    def _write(self) -> None:
        pickle.dump(self._waiting, self._file, protocol=5)
        self._waiting = []

    def __iter__(self) -> Iterator[Decision]:
        self._write()
        self._file.seek(0)
        while True:
            try:
                yield from pickle.load(self._file)  # our own, from a file without a name
            except EOFError:
                return

    def close(self) -> None:
        self._file.close()


def delete_listed(service: Service, entry: Metadata) -> None:
    """Delete an object if it is still the one that was listed; one that is gone is no error."""
    if service.capability.delete_with_if_match and entry.etag is not None:
        try:
            service.delete(entry.path, DeleteOptions(if_match=entry.etag))
        except NotFound:
            return
        return
    # As near as such a service lets us come: a change in the moment between the two is not seen.
    try:
        now = stat_again(service, entry)
    except NotFound:
        return
    if now.pin != entry.pin:
        raise ConditionNotMatch(
            f"{service.location(entry.path)} was rewritten since it was listed; it was kept"
        )
    service.delete(entry.path, DeleteOptions())


class DeleteRows:
    """The rows of deletes of one tree, which are announced to the journal, many together.

    An object that is gone is in no listing: whoever resumes could not tell of it otherwise.
    """

    def __init__(self, shared: Shared, number: int, add: Callable[[Row], Row]) -> None:
        """``add`` writes a row, and gives back how it was told."""
        self._journal = shared.journal
        self._progress = shared.progress
        self._number = number
        self._add = add
        self._told: list[Row] = []

    @contextmanager
    def announce(self, decisions: Sequence[Decision]) -> Iterator[None]:
        """Inside of this they may be deleted. What an error ends stays announced."""
        if self._journal is None:
            yield
            return
        acts = self._journal.announce(self._number, [predicted_row(each) for each in decisions])
        yield
        with self._journal.lock:
            self._journal.settle_acts(acts, self._told)
        self._told = []

    def tell(self, row: Row) -> None:
        """An object was deleted, or could not be."""
        told = self._add(row)
        self._progress.add_deleted()
        if self._journal is not None:
            self._told.append(told)


def delete_all(
    side: Side,
    decisions: Iterator[Decision],
    concurrent: int,
    rows: DeleteRows,
    stopped: Callable[[], bool],
    backup: Backup | None = None,
    like: Side | None = None,
) -> None:
    """Delete what was decided, by as many requests at a time; a row for each, after the act.

    A folder that is left empty stays where the tree that it is made ``like`` has an empty one.
    """
    service = side.service
    at_once = service.deletes_at_once if isinstance(service, DeletingMany) else 0
    if backup is not None:
        at_once = 0  # each is kept first, and one that cannot be kept stays
    together = at_once or 1
    most = max(_TOGETHER, together * concurrent)
    with ThreadPoolExecutor(
        concurrent, thread_name_prefix="calque-delete", initializer=tracing.enter_here()
    ) as pool:
        while not stopped() and (several := list(islice(decisions, most))):
            batches = [
                several[begin : begin + together] for begin in range(0, len(several), together)
            ]
            work = partial(_delete_batch, service, backup, stopped=stopped)
            with rows.announce(several):
                gone: list[str] = []
                for row in chain.from_iterable(pool.map(work, batches)):
                    faults.point("tree.deleted")
                    rows.tell(row)
                    if row.outcome == "deleted":
                        gone.append(row.path)
                # Before they are forgotten: whoever resumes knows no other that were not empty.
                remove_emptied(side, folders_of(gone), like)


def _delete_batch(
    service: Service,
    backup: Backup | None,
    decisions: Sequence[Decision],
    *,
    stopped: Callable[[], bool],
) -> list[Row]:
    """The rows of some deletes, in one request where the service has that; none when stopped."""
    if stopped():
        return []
    if len(decisions) == 1 or not isinstance(service, DeletingMany):
        return [_delete_one(service, each, backup) for each in decisions]
    begun = time.monotonic()
    try:
        refused = service.delete_many([_entry(each) for each in decisions])
    except InvalidInput:
        # One odd key may spoil the whole document: each by itself then.
        return [_delete_one(service, each) for each in decisions]
    except CalqueError as error:
        refused = {_entry(each).path: error for each in decisions}
    seconds = time.monotonic() - begun
    return [_row(each, refused.get(_entry(each).path), seconds) for each in decisions]


def _delete_one(service: Service, decision: Decision, backup: Backup | None = None) -> Row:
    begun = time.monotonic()
    error: CalqueError | None = None
    try:
        if backup is None or not backup.take(decision.path, _entry(decision)):
            delete_listed(service, _entry(decision))
    except CalqueError as refusal:
        error = refusal
    return _row(decision, error, time.monotonic() - begun)


def _row(decision: Decision, error: CalqueError | None, seconds: float) -> Row:
    if error is not None:
        return failed_row(decision, error, seconds)
    entry = _entry(decision)
    return Row(
        path=decision.path,
        outcome="deleted",
        rule=decision.rule,
        size=entry.size,
        target_etag=entry.etag,
        seconds=round(seconds, 6),
    )


def _entry(decision: Decision) -> Metadata:
    entry = decision.pair.target
    assert entry is not None
    return entry


def folders_of(paths: Iterable[str]) -> set[str]:
    """Those that paths lie in, below the root of their tree."""
    return {path.rpartition("/")[0] for path in paths if "/" in path}


def remove_emptied(side: Side, folders: set[str], like: Side | None = None) -> None:
    """Remove folders that deletes have left empty, and those above them; no other one.

    One that may not be removed stays: all that was to be deleted is deleted. So does one that is
    empty in the tree that this is made ``like``.
    """
    service = side.service
    if not isinstance(service, Directories):
        return
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(PermissionDenied):
            while folder and not (like is not None and like.has_empty_folder(folder)):
                if not service.remove_folder(side.key(folder) + "/"):
                    break
                folder = folder.rpartition("/")[0]


def remove_root(side: Side) -> None:
    """Remove the folder of a local tree, if nothing is left in it."""
    if side.is_local and side.only is None:
        with suppress(OSError):
            os.rmdir(side.service.location("").removeprefix("file://"))
