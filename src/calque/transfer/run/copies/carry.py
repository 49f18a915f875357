"""The copy of one object of a tree, in one of three ways.

Inside a service by its server, in one request where the listing tells enough; a small one between
services read whole and written whole, on the thread that asks; a large one by a Copier, whose parts
share the limit of the tree.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import cast

from calque import tracing
from calque.errors import (
    Aborted,
    CalqueError,
    ConditionNotMatch,
    NotFound,
    Unsupported,
)
from calque.operator.checkpoint import Checkpoint
from calque.operator.copy import start_copy
from calque.operator.layers import Bandwidth, ConcurrencyLimit
from calque.operator.move import rename_at_once
from calque.operator.options import CopyOptions
from calque.operator.service import (
    Attributed,
    Directories,
    Renaming,
    Service,
)
from calque.transfer.model import Decision, Pair, Row
from calque.transfer.plan.side import Side, is_marker
from calque.transfer.report.rows import copied_row, failed_row, predicted_row
from calque.transfer.request.options import TreeOptions
from calque.transfer.run.backup import Backup
from calque.transfer.run.copies.attributes import (
    FilesAsObjects,
    carries_attributes,
    wanted_attributes,
)
from calque.transfer.run.copies.copy_keeper import CopyKeeper
from calque.transfer.run.copies.large_copies import CLIENT, SERVER, LargeCopies, Spread
from calque.transfer.run.copies.small_copies import SmallCopies, Tell
from calque.values import MIB, Metadata
from calque.values.file_attributes import LINK_TYPE

_ONE_PART = 8 * MIB
"""Up to this size an object is read whole and written whole, if the target takes it at once."""
RENAMED = "renamed"

Done = Callable[[Row, Metadata | None], None]
"""Gets the row of a copy after the act, and what was made if it was."""


@dataclass(slots=True)
class _Way:
    """What was learnt about the two services."""

    server: bool
    """Whether a copy inside the service is still to be tried."""
    proven: bool = False
    """Whether one was made."""
    rename: bool = False
    """Whether the objects are moved, and a rename is still to be tried."""


class Carrier:
    """Copies pairs of one pair of trees. Safe between threads."""

    def __init__(
        self,
        source: Side,
        target: Side,
        options: TreeOptions,
        *,
        limit: ConcurrencyLimit,
        stopping: threading.Event,
        moved: Callable[[int], None],
        dropped: Callable[[str], None],
        keeper: CopyKeeper | None = None,
        renames: bool = False,
        backup: Backup | None = None,
    ) -> None:
        self._backup = backup
        self._source = source
        self._target = target
        self._options = options
        self._stopping = stopping
        self._moved = moved
        same = source.service.scheme == target.service.scheme
        renames = renames and same and isinstance(source.service, Renaming)
        self._way = _Way(server=same and not source.is_local, rename=renames)
        # More would be parts on threads of their own, and wait for a place that this one holds.
        self._one_part = min(_ONE_PART, target.service.capability.write_at_once_up_to)
        bandwidth = (
            None if options.bandwidth is None else Bandwidth(options.bandwidth, stopping=stopping)
        )
        self._origin = source.service
        if carries_attributes(source, target):
            self._origin = cast(Service, FilesAsObjects(source.service, options))
        self._copying = CopyOptions(
            if_not_exists=options.if_not_exists,
            carry_tags=options.carry_tags,
            carry_class=options.carry_class,
            chunk=options.chunk,
            concurrent=max(1, options.concurrent // 2),
            stream="auto",
            stream_parts=True,
        )
        self._large = LargeCopies(
            self._origin,
            target,
            self._copying,
            stopping=stopping,
            moved=moved,
            keeper=keeper,
            bandwidth=bandwidth,
        )
        self._small = SmallCopies(
            source,
            self._origin,
            target,
            options,
            self._copying,
            limit=limit,
            moved=moved,
            dropped=dropped,
            bandwidth=bandwidth,
        )

    def is_large(self, pair: Pair) -> bool:
        """Whether it takes more than one part, and so a Copier."""
        return (pair.source.size if pair.source else 0) > self._most_at_once

    @property
    def _most_at_once(self) -> int:
        if not self._way.server:
            return self._one_part
        return max(self._one_part, self._source.service.capability.copy_listed_up_to)

    def carry(self, decision: Decision, done: Done) -> None:
        """Copy a pair; ``done`` is called once, perhaps later and by another thread."""
        begun = time.monotonic()
        pair = decision.pair
        assert pair.source is not None

        def tell(pair: Pair, made: Metadata | CalqueError, route: str) -> None:
            seconds = time.monotonic() - begun
            if isinstance(made, Metadata):
                done(copied_row(decision, pair, made, route, seconds), made)
            else:
                done(failed_row(decision, made, seconds), None)

        try:
            if decision.twin is not None and (made := self._copy_twin(pair, decision.twin)):
                tell(pair, made, SERVER)
                return
            self._carry_pinned(pair, tell)
        except (ConditionNotMatch, NotFound) as error:
            self._carry_anew(decision, error, tell, done)
        except CalqueError as error:
            tell(pair, error, "")

    def _copy_twin(self, pair: Pair, twin: Metadata) -> Metadata | None:
        """The copy of an object of the target that has the bytes; None where it cannot be made."""
        into, key = self._target.service, self._target.key(pair.target_path)
        can = into.capability.copy_with_if_not_exists
        options = replace(self._copying, stream=False, if_not_exists=can)
        try:
            made = start_copy(into, twin, into, key, options).run()
        except (ConditionNotMatch, NotFound, Unsupported):
            return None  # it went, or another is there: the source has the bytes too
        assert pair.source is not None
        return self._restore(into, made, pair.source) if isinstance(into, Attributed) else made

    def can_split(self, size: int) -> bool:
        """Whether several processes may bring the parts of an object."""
        return size > self._options.split_over and self._target.service.capability.copy_concurrent

    def carry_split(self, decision: Decision, spread: Spread, done: Done) -> None:
        """Copy a huge object whose parts others bring: ``spread`` returns when they have."""
        begun, pair = time.monotonic(), decision.pair
        assert pair.source is not None
        try:
            made, route = self._large.copy_split(pair, pair.source, spread, inside=self._way.server)
        except CalqueError as error:
            done(failed_row(decision, error, time.monotonic() - begun), None)
            return
        done(copied_row(decision, pair, made, route, time.monotonic() - begun), made)

    def bring_parts(self, checkpoint: Checkpoint, numbers: Collection[int]) -> int:
        """The share of another process in such a copy."""
        return self._large.bring_parts(checkpoint, numbers, self._options.concurrent)

    def _carry_anew(
        self,
        decision: Decision,
        error: CalqueError,
        tell: Tell,
        done: Done,
    ) -> None:
        """A source that is another than was listed is copied as it is now, once."""
        pair = decision.pair
        assert pair.source is not None
        try:
            fresh = self._source.service.stat(pair.source.path)
        except CalqueError:
            fresh = None
        if fresh is not None and fresh.pin == pair.source.pin:
            tell(pair, error, "")  # the source is as it was: the target has refused
            return
        if fresh is not None:
            again = replace(pair, source=fresh)
            try:
                self._carry_pinned(again, tell)
                return
            except (ConditionNotMatch, NotFound) as second:
                error = second
            except CalqueError as second:
                tell(again, second, "")
                return
        row = failed_row(decision, error, 0.0)
        done(
            replace(row, outcome="changed", why=f"the source does not hold still: {row.why}"), None
        )

    def _carry_pinned(self, pair: Pair, tell: Tell) -> None:
        source = pair.source
        assert source is not None
        if self._stopping.is_set():
            raise Aborted("the run was stopped before this object")
        if self._backup is not None and pair.target is not None:
            self._backup.keep_overwritten(pair)
        if is_marker(source) and isinstance(self._target.service, Directories):
            self._target.service.create_dir(self._target.key(pair.target_path))
            tell(pair, Metadata(path=self._target.key(pair.target_path), is_dir=True), CLIENT)
            return
        # A link is made anew, if it may lead there; what follows it can be renamed all the same.
        may_rename = self._way.rename and source.content_type != LINK_TYPE
        if may_rename and (renamed := self._rename(pair, source)) is not None:
            tell(pair, renamed, RENAMED)
            return
        inside = self._try_inside(pair, source)
        if inside is not None:
            tell(pair, inside, SERVER)
            return
        if source.size > self._one_part:
            made, route = self._copy_large(pair, source)
            tell(pair, made, route)
            return
        self._small.copy(pair, source, tell)

    def _rename(self, pair: Pair, source: Metadata) -> Metadata | None:
        """The move as one step; None where the service cannot between these two."""
        origin, into = self._source.service, self._target.service
        key = self._target.key(pair.target_path)
        renamed = rename_at_once(origin, source, into, key, self._copying)
        self._way.rename = renamed is not None
        return renamed

    def _try_inside(self, pair: Pair, source: Metadata) -> Metadata | None:
        """The copy inside the service; None where it cannot be made so."""
        if not self._way.server or is_marker(source):
            return None
        try:
            made = self._copy_inside(pair, source)
        except Unsupported:
            # Two accounts or projects, or a condition that copies do not keep: it would fail for
            # every object, so no other is tried, unless one was copied so already.
            self._way.server = self._way.proven
            return None
        self._way.proven = True
        return made

    def _copy_inside(self, pair: Pair, source: Metadata) -> Metadata:
        key = self._target.key(pair.target_path)
        origin, into = self._source.service, self._target.service
        if source.size > origin.capability.copy_listed_up_to:
            options = replace(self._copying, stream=False)
            return self._large.drive(pair.path, self._large.start(pair, source, options))
        driver = origin.copy(source, key, self._copying, into=into)
        try:
            while (step := driver.step()) is not None:
                self._moved(step)
        except BaseException:
            driver.abort()
            raise
        return driver.result()

    def _copy_large(self, pair: Pair, source: Metadata) -> tuple[Metadata, str]:
        copier = self._large.start(pair, source, self._copying)
        with tracing.span("copy", path=pair.path, bytes=source.size, route=copier.route):
            made = self._large.drive(pair.path, copier)
        if isinstance(self._target.service, Attributed):
            made = self._restore(self._target.service, made, copier.source)
        return made, SERVER if copier.route == SERVER else CLIENT

    def _restore(self, into: Attributed, made: Metadata, source: Metadata) -> Metadata:
        """Give a file that was made by a copier what its source keeps besides the bytes."""
        if self._origin.capability.user_metadata:
            if not source.user:
                source = self._origin.stat(source.path)  # a listing does not tell it
            self._small.note_dropped(source)
        into.set_attributes(made.path, wanted_attributes(self._origin, source, self._options))
        return self._target.service.stat(made.path)

    def predict(self, decision: Decision) -> Row:
        """The row that a copy will have, as far as what was listed tells."""
        source = decision.pair.source
        assert source is not None
        try:
            self._small.check(decision.pair, source)
        except CalqueError as error:
            return failed_row(decision, error, 0.0)
        return predicted_row(decision)

    def abort(self) -> None:
        """Abort large copies under way, in the middle of what they wait for: nothing is left."""
        self._large.abort()

    def give_up(self) -> None:
        """Leave nothing of what is under way, and wait for none of it."""
        self._small.give_up()
        self._large.abort()

    def flush(self) -> None:
        """See files through that wait for the sync of their batch."""
        self._small.flush()
