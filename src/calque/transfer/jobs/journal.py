"""The journal of a run: what is left of it, noted in the ledger about once a second.

A journal holds ranges of keys that were not acted on yet, large copies under way and failures,
never objects. So whoever resumes lists only what is left, and finds what was done since the last
note up to date; objects that have a row in the report's file get no other.

What is deleted or moved is in no listing any more. It is announced before, many objects together,
and forgotten once its rows are on the disk: whoever resumes looks what became of it.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calque import faults
from calque.errors import AlreadyExists, CalqueError, ConditionNotMatch, Unavailable
from calque.ledger import Ledger
from calque.ledger.job_progress import (
    LEASE_SECONDS,
    Acts,
    Failure,
    Progress,
    acts_of,
    announce_acts,
    copies_of,
    keep_copy,
    note_progress,
    spans_of,
)
from calque.ledger.job_record import Job, Span, State
from calque.ledger.jobs import begin_job, end_job, expire_jobs, remove_job, take_job
from calque.ledger.lease import this_process
from calque.operator.interruptible import join
from calque.transfer.model import KeyRange, Row, Totals, sort_key

_NOTE_SECONDS = 1.0

Left = Callable[[], Sequence[tuple[int, KeyRange]]]
"""What is left to be acted on: of which tree, which keys."""


def new_owner() -> str:
    """A name for this run: one process may make several."""
    return f"{this_process()}#{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What an earlier process has left of a job."""

    spans: tuple[tuple[int, KeyRange], ...]
    copies: dict[tuple[int, str], str]
    """Checkpoints of large copies by tree and path; empty where there was none yet."""
    announced: tuple[tuple[int, tuple[Row, ...]], ...] = ()
    """What it was about to delete or to move: of which tree, and the rows that this would have had.
    Some may have them."""

    def spans_of(self, tree: int) -> list[KeyRange]:
        return [span for number, span in self.spans if number == tree]

    def holds(self, tree: int, path: str) -> bool:
        """Whether a path is still to be acted on."""
        if (tree, path) in self.copies:
            return True
        return any(number == tree and span.holds(path) for number, span in self.spans)


class Journal:
    """One job as this process works on it. Safe between threads.

    ``lock`` is held by whoever moves the mark of what is done together with what counts it, so that
    both are noted as they belong together.
    """

    def __init__(self, ledger: Ledger, job: Job, unfinished: Unfinished | None) -> None:
        self._ledger = ledger
        self.job = job
        self.unfinished = unfinished
        """None for a job that begins."""
        self.lock = threading.Lock()
        self._noting = threading.Lock()
        self.settled = Totals.from_json(job.totals)
        """Totals of what lies in no range that is left."""
        self.phase = job.phase
        self._failures: list[Failure] = []
        self._acts: dict[int, tuple[int, KeyRange | None]] = {}
        """Announced by number: of which tree, and in which range, unless their end is told."""
        self._inherited: dict[int, int] = {}
        """Those that an earlier process has announced: of which tree."""
        self._ended_acts: set[int] = set()
        self._last_acts = 0
        self._copies = set() if unfinished is None else set(unfinished.copies)
        """Large copies that are kept by name."""
        self._ended_copies: set[tuple[int, str]] = set()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._trouble: CalqueError | None = None

    @classmethod
    def begin(cls, ledger: Ledger, job: Job, trees: int) -> Journal:
        """Note a new job over so many trees; ConditionNotMatch where another is at them."""
        expire_jobs(ledger)
        spans = [Span(tree=number) for number in range(trees)]
        return cls(ledger, begin_job(ledger, job, spans, LEASE_SECONDS), None)

    @classmethod
    def resume(cls, ledger: Ledger, job_id: str) -> Journal:
        """Take a job over that nobody is at; of two at once one wins."""
        job = take_job(ledger, job_id, new_owner(), LEASE_SECONDS)
        acts = acts_of(ledger, job.job_id)
        left = Unfinished(
            tuple((span.tree, range_of(span)) for span in spans_of(ledger, job.job_id)),
            {
                (tree, os.fsdecode(path)): checkpoint
                for (tree, path), checkpoint in copies_of(ledger, job.job_id).items()
            },
            tuple((each.tree, _unpack(each.packed)) for each in acts),
        )
        journal = cls(ledger, job, left)
        journal._last_acts = max((each.number for each in acts), default=0)
        journal._inherited = {each.number: each.tree for each in acts}
        return journal

    @property
    def resumed(self) -> bool:
        return self.unfinished is not None

    # While it runs

    def start(self, left: Left, flush: Callable[[], None], lose: Callable[[], None]) -> None:
        """Note progress from now on. ``flush`` brings rows to the disk, ``lose`` ends the run where
        the job was taken over, or the ledger is lost."""

        def work() -> None:
            silent = 0.0
            while not self._over.wait(_NOTE_SECONDS):
                try:
                    self.note(left, flush)
                    silent = 0.0
                except ConditionNotMatch as error:
                    self._trouble = error
                    lose()
                    return
                except CalqueError as error:
                    silent += _NOTE_SECONDS
                    # A ledger that is away for a moment is no reason to stop; a lease that runs
                    # out is: another may take the job for dead.
                    if silent > LEASE_SECONDS / 2 or not isinstance(error, Unavailable):
                        self._trouble = error
                        lose()
                        return

        self._thread = threading.Thread(target=work, name="calque-journal", daemon=True)
        self._thread.start()

    def note(self, left: Left, flush: Callable[[], None]) -> None:
        """Note how far the run is. One note after the other: an older one that was slow on its way
        would take the place of a newer one."""
        with self._noting:
            self._note(left, flush)

    def _note(self, left: Left, flush: Callable[[], None]) -> None:
        with self.lock:
            found = left()
            spans = [span_of(tree, each) for tree, each in found]
            totals, phase = self.settled.to_json(), self.phase
            failures, self._failures = self._failures, []
            ended, copies = self._find_ended(found), set(self._ended_copies)
        # Rows of all that is done lie before this: first they are on the disk, then it is noted.
        flush()
        faults.point("journal.note")
        progress = Progress(
            spans=spans,
            totals=totals,
            phase=phase,
            failures=failures,
            ended_acts=ended,
            ended_copies={(tree, sort_key(path)) for tree, path in copies},
        )
        try:
            note_progress(self._ledger, self.job, progress)
        except CalqueError:
            with self.lock:
                self._failures = [*failures, *self._failures]
            raise
        with self.lock:
            self._ended_acts -= ended
            self._ended_copies -= copies
            for number in ended:
                self._acts.pop(number, None)

    def _find_ended(self, left: Sequence[tuple[int, KeyRange]]) -> set[int]:
        """Acts that count among the totals: told as ended, or of a range that is left no more."""
        behind = {
            number
            for number, (tree, span) in self._acts.items()
            if span is not None and not any(tree == of and span.meets(each) for of, each in left)
        }
        return self._ended_acts | behind

    def announce(self, tree: int, rows: Sequence[Row], span: KeyRange | None = None) -> int:
        """Keep what is about to be deleted or moved, by the rows that it will have.

        Of ``span`` they are over when nothing of that range is left; without one, when
        :meth:`settle_acts` is told the number that is given back.
        """
        with self.lock:
            self._last_acts = number = self._last_acts + 1
            self._acts[number] = (tree, span)
        self._announce(Acts(number, tree, _pack(rows)))
        return number

    def _announce(self, acts: Acts) -> None:
        """Nothing may go before this is kept; a ledger that is away for a moment is waited for."""
        until = time.monotonic() + LEASE_SECONDS / 2
        while True:
            try:
                announce_acts(self._ledger, self.job, acts)
                return
            except AlreadyExists:
                return  # it had arrived, and only the answer was lost
            except Unavailable:
                if time.monotonic() > until:
                    raise
                self._over.wait(_NOTE_SECONDS)

    def settle_acts(self, number: int, rows: Sequence[Row]) -> None:
        """Count the rows of acts that were announced, which are over. The caller holds ``lock``."""
        for row in rows:
            self.settle(row)
        self._ended_acts.add(number)

    def settle_announced(self, tree: int, rows: Sequence[Row]) -> None:
        """Count rows of what an earlier process has announced of a tree: all of that is over."""
        with self.lock:
            for row in rows:
                self.settle(row)
            self._ended_acts |= {number for number, of in self._inherited.items() if of == tree}

    def settle(self, row: Row) -> None:
        """Count a row whose object lies in no range that is left. The caller holds ``lock``."""
        self.settled.add(row)
        if row.is_problem:
            self._failures.append(Failure(sort_key(row.path), row.error or row.outcome, row.why))

    def keep_copy(self, tree: int, path: str, checkpoint: str = "") -> None:
        """Keep how far a large copy is; it is then no more among what is left by ranges."""
        with self.lock:
            self._copies.add((tree, path))
        keep_copy(self._ledger, self.job, tree, sort_key(path), checkpoint)

    def keeps_copy(self, tree: int, path: str) -> bool:
        """Whether a copy is kept by name. Small ones are not: they are as many as objects."""
        return (tree, path) in self._copies

    def end_copy(self, tree: int, path: str, row: Row) -> None:
        """A large copy is over: it counts, and is forgotten, by the next note."""
        with self.lock:
            self.settle(row)
            self._copies.discard((tree, path))
            self._ended_copies.add((tree, path))

    # The end

    def end(
        self, state: State, left: Left, flush: Callable[[], None], message: str | None = None
    ) -> None:
        """Note the last progress, and let go of the job. Raises what kept it from being noted."""
        self._join()
        if self._trouble is not None:
            raise self._trouble
        faults.point("job.ends")
        self.note(left, flush)
        end_job(self._ledger, self.job, state, message)
        faults.point("job.ended")

    def let_go(self) -> None:
        """Leave a job as it was last noted, for whoever resumes it."""
        self._join()
        end_job(self._ledger, self.job, "STOPPED", "it ended by an error")

    def drop(self) -> None:
        """Forget a job that has done nothing."""
        self._join()
        end_job(self._ledger, self.job, "STOPPED")
        remove_job(self._ledger, self.job.job_id)

    def close(self) -> None:
        self._join()
        self._ledger.close()

    def _join(self) -> None:
        self._over.set()
        if self._thread is not None:
            join(self._thread)


_KEPT_OF_ROWS = ("path", "outcome", "rule", "why", "size", "source_etag", "target_etag", "target")


def _pack(rows: Sequence[Row]) -> bytes:
    told = [[getattr(row, name) for name in _KEPT_OF_ROWS] for row in rows]
    return zlib.compress(json.dumps(told).encode(), 1)


def _unpack(packed: bytes) -> tuple[Row, ...]:
    told = json.loads(zlib.decompress(packed))
    return tuple(Row(**dict(zip(_KEPT_OF_ROWS, each, strict=True))) for each in told)


def span_of(tree: int, keys: KeyRange) -> Span:
    """A range of keys as the ledger keeps it."""
    return Span(sort_key(keys.after), None if keys.up_to is None else sort_key(keys.up_to), tree)


def range_of(span: Span) -> KeyRange:
    """The same, back."""
    return KeyRange(
        os.fsdecode(span.after), None if span.up_to is None else os.fsdecode(span.up_to)
    )
