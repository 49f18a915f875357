"""What the jobs of one run share, and what a cluster is to them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from calque.errors import CalqueError, ResourceExhausted
from calque.operator.checkpoint import Checkpoint
from calque.operator.layers import ConcurrencyLimit
from calque.transfer.model import Decision, KeyRange, Row
from calque.transfer.report.progress import TreeProgress
from calque.transfer.report.report import Collector
from calque.transfer.request.options import TreeOptions
from calque.values import Metadata

if TYPE_CHECKING:
    from calque.transfer.jobs.journal import Journal


@dataclass(frozen=True, slots=True)
class Shared:
    """What the jobs of one run have in common."""

    options: TreeOptions
    collector: Collector
    limit: ConcurrencyLimit
    progress: TreeProgress
    stopping: threading.Event
    gave_up: threading.Event = field(default_factory=threading.Event)
    """Set where the run has stopped itself: at an error, as it was asked to, or on a full disk."""
    moves: bool = False
    moved_before: bool = False
    """Whether an earlier process of a move may have taken sources away, without a note of it."""
    delete_later: Callable[[str, Metadata], None] | None = None
    """Takes the sources of a move, where somebody else deletes them."""
    journal: Journal | None = None
    known: Mapping[tuple[int, str], Row] = field(default_factory=dict)
    """Rows that an earlier process wrote, of paths that are left all the same."""
    watched: Mapping[tuple[int, str], Row] = field(default_factory=dict)
    """What an earlier process was about to move, and was still there: its delete may be under way,
    and come before the listing."""

    hand_over: Callable[[Decision], None] | None = None
    """Where huge objects are not copied but told to whoever splits them."""

    def gives_up_at(self, row: Row) -> bool:
        """Whether nothing more is to be begun: at an error, where that was asked for, or because
        nothing more has room. A dry run tells of all that would fail."""
        if not row.is_problem or self.options.dry_run:
            return False
        return self.options.on_error == "stop" or row.error == ResourceExhausted.__name__


class RangeResult(Protocol):
    """What a cluster has done of a range."""

    @property
    def rows(self) -> Sequence[Row]: ...

    @property
    def left(self) -> Sequence[KeyRange]: ...

    @property
    def listed(self) -> int: ...

    @property
    def listed_bytes(self) -> int: ...

    @property
    def dropped(self) -> Mapping[str, int]: ...

    @property
    def moved(self) -> Sequence[tuple[str, Metadata]]:
        """Sources that were copied, by path, and are to be deleted now."""

    @property
    def huge(self) -> Sequence[Decision]:
        """Objects that several tasks are to copy."""

    @property
    def error(self) -> CalqueError | None: ...


class Cluster(Protocol):
    """Whoever copies ranges in other processes."""

    def run(
        self,
        tree: int,
        spans: Sequence[KeyRange],
        can_be_cut: bool,
        left_out: Collection[str] = (),
        moved_before: bool = False,
    ) -> tuple[Sequence[RangeResult], list[KeyRange]]:
        """Work on some ranges but for some paths; what came of them, and those that had to wait."""

    def copy_parts(self, tree: int, checkpoint: Checkpoint) -> None:
        """Let tasks bring the parts of a copy that was opened."""

    def cancel(self) -> None:
        """Give up what tasks are at; whoever waits for them gets an error of it."""
