"""What a run has done: totals, the rows that went wrong, and why nothing was deleted if so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from calque.transfer.model import JobId, Row, Totals
from calque.transfer.report.html import render_html
from calque.transfer.request.options import Kind
from calque.values import size_text

_SHOWN = 1000
"""Problems that a report holds by itself; all of them are in the rows of --report."""
_SHOWN_IN_HTML = 20
DONE, FAILED, PARTLY, STOPPED = 0, 1, 3, 130


class RowWriter(Protocol):
    """Where rows go besides: a file of them."""

    def write(self, rows: Sequence[Row]) -> None: ...

    def flush(self) -> None: ...


@dataclass(slots=True)
class Report:
    """The outcome of a run over trees; the same here and on Spark."""

    job: JobId
    kind: Kind
    sources: tuple[str, ...]
    target: str
    dry_run: bool = False
    totals: Totals = field(default_factory=Totals)
    problems: list[Row] = field(default_factory=list)
    """The first thousand."""
    kept: list[str] = field(default_factory=list)
    """The first names that would have been deleted and were not."""
    no_deletes: str = ""
    """Why nothing was deleted although it was asked for."""
    dropped: dict[str, int] = field(default_factory=dict)
    """What the target could not keep, and of how many objects."""
    verified: int | None = None
    """Copied targets that a fresh listing shows as they were made; None where none was asked."""
    refuted: int = 0
    """Those that it does not show so."""
    refutations: list[str] = field(default_factory=list)
    """The first of them, each with its reason."""
    error: str = ""
    """What ended the run before its time."""
    stopped: bool = False
    resumed: bool = False
    """Whether an earlier process has done a part of it."""

    @property
    def exit_code(self) -> int:
        """0 done, 1 nothing was done, 3 partly, 130 stopped."""
        if self.stopped:
            return STOPPED
        if self.totals.problems:
            return PARTLY if self.totals.done else FAILED
        return PARTLY if self.no_deletes or self.error or self.refuted else DONE

    @property
    def ok(self) -> bool:
        return self.exit_code == DONE

    def _repr_html_(self) -> str:
        """For notebooks: from where to where, what became of how many, and the first problems."""
        notes = [note for note in (self.error, self.no_deletes) if note]
        notes += [f"{row.path}: {row.why or row.outcome}" for row in self.problems[:_SHOWN_IN_HTML]]
        title = f"{self.kind} {', '.join(self.sources)} → {self.target}"
        counts = (
            (outcome, f"{count.objects:,}", size_text(count.bytes))
            for outcome, count in self.totals.by_outcome.items()
            if count.objects
        )
        shown = f"{title} (dry run)" if self.dry_run else title
        return render_html(shown, notes, ("outcome", "objects", "bytes"), counts)

    def to_json(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "kind": self.kind,
            "sources": list(self.sources),
            "target": self.target,
            "dry_run": self.dry_run,
            "totals": self.totals.to_json(),
            "problems": [row.to_json() for row in self.problems],
            "kept": list(self.kept),
            "no_deletes": self.no_deletes,
            "dropped": dict(self.dropped),
            "verified": self.verified,
            "refuted": self.refuted,
            "refutations": list(self.refutations),
            "error": self.error,
            "stopped": self.stopped,
            "resumed": self.resumed,
            "exit_code": self.exit_code,
        }


class Collector:
    """Takes rows from every thread into the report, the file of rows and whoever listens."""

    def __init__(
        self,
        report: Report,
        writer: RowWriter | None = None,
        listen: Callable[[Row], None] | None = None,
        claim: Callable[[Row], None] | None = None,
    ) -> None:
        """``claim`` gets the rows that are held against the target once more at the end."""
        self.report = report
        self._writer = writer
        self._listen = listen
        self._claim = claim
        self._lock = threading.Lock()

    def add(self, row: Row) -> None:
        """Take a row, which was made after the act."""
        with self._lock:
            self.report.totals.add(row)
            if row.is_problem and len(self.report.problems) < _SHOWN:
                self.report.problems.append(row)
            if row.outcome == "kept" and len(self.report.kept) < _SHOWN:
                self.report.kept.append(row.path)
            if self._writer is not None:
                self._writer.write((row,))
            if self._claim is not None:
                self._claim(row)
            if self._listen is not None:
                self._listen(row)

    def note_refuted(self, path: str, why: str) -> None:
        """A copied target is not what its row says."""
        self.report.refuted += 1
        if len(self.report.refutations) < _SHOWN:
            self.report.refutations.append(f"{path}: {why}")

    def flush(self) -> None:
        """Bring the rows so far to the disk."""
        if self._writer is not None:
            self._writer.flush()

    def note_listed(self, size: int) -> None:
        with self._lock:
            self.report.totals.listed.add(size)

    def take(self, listed: int, size: int, dropped: Mapping[str, int]) -> None:
        """Count what another process has listed, and what it could not keep."""
        with self._lock:
            self.report.totals.listed.objects += listed
            self.report.totals.listed.bytes += size
            for what, count in dropped.items():
                self.report.dropped[what] = self.report.dropped.get(what, 0) + count

    def note_dropped(self, what: str) -> None:
        with self._lock:
            self.report.dropped[what] = self.report.dropped.get(what, 0) + 1
