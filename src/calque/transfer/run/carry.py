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
    IntegrityError,
    NotFound,
    Unsupported,
)
from calque.operator.checkpoint import Checkpoint
from calque.operator.copy import start_copy
from calque.operator.drivers.stream import write_options
from calque.operator.layers import Bandwidth, ConcurrencyLimit
from calque.operator.layers.chain import Call
from calque.operator.move import rename_at_once
from calque.operator.options import CopyOptions, WriteOptions
from calque.operator.read import pinned_options, read_all
from calque.operator.service import (
    AsideWriting,
    Attributed,
    Directories,
    Fetching,
    Linking,
    Renaming,
    Service,
)
from calque.transfer.model import Decision, Pair, Row
from calque.transfer.plan.side import Side, is_marker
from calque.transfer.report.rows import copied_row, failed_row, predicted_row
from calque.transfer.request.options import TreeOptions
from calque.transfer.run.attributes import (
    FilesAsObjects,
    carries_attributes,
    describe_link,
    exact_mtime,
    wanted_attributes,
)
from calque.transfer.run.backup import Backup
from calque.transfer.run.copy_keeper import CopyKeeper
from calque.transfer.run.durability import DurableBatch
from calque.transfer.run.large_copies import CLIENT, SERVER, LargeCopies, Spread
from calque.transfer.run.links import Links
from calque.values import MIB, ByteRange, Metadata
from calque.values.file_attributes import LINK_TYPE, USER_KEY, FileAttributes

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
        self._limit = limit
        self._stopping = stopping
        self._moved = moved
        self._dropped = dropped
        same = source.service.scheme == target.service.scheme
        renames = renames and same and isinstance(source.service, Renaming)
        self._way = _Way(server=same and not source.is_local, rename=renames)
        # More would be parts on threads of their own, and wait for a place that this one holds.
        self._one_part = min(_ONE_PART, target.service.capability.write_at_once_up_to)
        self._batch = DurableBatch(options.fsync)
        self._bandwidth = None if options.bandwidth is None else Bandwidth(options.bandwidth)
        self._links = Links(target, options)
        # Asked once: what a service supplies besides is found out by looking for all of it.
        self._aside = target.service if isinstance(target.service, AsideWriting) else None
        self._fetching = source.service if isinstance(source.service, Fetching) else None
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
            bandwidth=self._bandwidth,
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
        tell: Callable[[Pair, Metadata | CalqueError, str], None],
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

    def _carry_pinned(
        self, pair: Pair, tell: Callable[[Pair, Metadata | CalqueError, str], None]
    ) -> None:
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
        self._copy_small(pair, source, tell)

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
            # Two accounts, two projects, a condition that copies do not keep: for all alike, unless
            # others were copied so already.
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
        if self._origin.capability.user_metadata and not source.user:
            source = self._origin.stat(source.path)  # a listing does not tell it
        into.set_attributes(made.path, self._wanted(self._origin, source))
        return self._target.service.stat(made.path)

    def _wanted(self, origin: Service, source: Metadata) -> FileAttributes:
        return wanted_attributes(origin, source, modified_ns(source), self._options)

    def _copy_small(
        self,
        pair: Pair,
        source: Metadata,
        tell: Callable[[Pair, Metadata | CalqueError, str], None],
    ) -> None:
        key, into = self._target.key(pair.target_path), self._target.service
        # One place among those of the tree, for reading and writing in turn.
        with self._limit.place(Call("copy", key)):
            found, data = self._read_small(source)
            if self._bandwidth is not None:
                self._bandwidth.take(len(data))
            if self._links.takes(found):
                wanted = self._wanted(self._source.service, found)
                made = self._links.make(key, found.path, data, wanted.mtime)
                tell(pair, made, CLIENT)
                return
            options = self._write_options(pair.path, found)
            aside = self._aside
            if aside is not None:
                local = self._source.is_local
                wanted = self._wanted(self._origin, found)
                file = aside.write_aside(
                    key, data, options, modified=wanted.mtime, mode=wanted.mode, sparse=local
                )
            else:
                made = into.write(key, (data,) if data else (), options)
        self._moved(len(data))
        if aside is not None:
            # Its row is written when the whole batch is on the disk.
            self._batch.add(file, len(data), self._ended(pair, wanted, tell))
        else:
            tell(pair, made, CLIENT)

    def predict(self, decision: Decision) -> Row:
        """The row that a copy will have, as far as what was listed tells."""
        source = decision.pair.source
        assert source is not None
        if self._links.takes(source):
            try:
                found, text = self._read_small(source)
                self._links.check(self._target.key(decision.pair.target_path), found.path, text)
            except CalqueError as error:
                return failed_row(decision, error, 0.0)
        return predicted_row(decision)

    def _ended(
        self,
        pair: Pair,
        wanted: FileAttributes,
        tell: Callable[[Pair, Metadata | CalqueError, str], None],
    ) -> Callable[[Metadata | CalqueError], None]:
        """What is told of a file when the batch is on the disk; owners are given to it then."""
        into = self._target.service

        def ended(made: Metadata | CalqueError) -> None:
            if isinstance(made, Metadata) and self._options.owner and isinstance(into, Attributed):
                try:
                    into.set_attributes(made.path, wanted)
                    made = into.stat(made.path)
                except CalqueError as error:
                    made = error
            tell(pair, made, CLIENT)

        return ended

    def _read_small(self, source: Metadata) -> tuple[Metadata, bytes]:
        service = self._source.service
        if source.content_type == LINK_TYPE and isinstance(service, Linking):
            return describe_link(source), service.read_link(source.path)
        options = pinned_options(service, source, ByteRange())
        if self._fetching is not None:
            carried = self._options.carry_tags and self._target.service.capability.user_metadata
            found, data = self._fetching.fetch(source.path, options, tags=carried)
            found = replace(found, path=source.path)
        else:
            # Headers are asked for only where the service has some.
            found = service.stat(source.path) if service.capability.user_metadata else source
            if isinstance(self._origin, FilesAsObjects):
                found = self._origin.describe(found)
            data = read_all(service, source.path, options)
        if len(data) != source.size:
            raise IntegrityError(
                f"{service.location(source.path)} gave {len(data)} of its {source.size} bytes"
            )
        return found, data

    def _write_options(self, path: str, source: Metadata) -> WriteOptions:
        options = write_options(source, self._copying)
        if not self._target.service.capability.user_metadata:
            if source.user.keys() - {USER_KEY} or source.content_type:
                self._dropped("content headers and user metadata")
            return WriteOptions(if_not_exists=options.if_not_exists, size_hint=source.size)
        given = None if source.content_type == LINK_TYPE else self._options.content_type
        return options if given is None else replace(options, content_type=given)

    def abort(self) -> None:
        """Abort large copies under way, in the middle of what they wait for: nothing is left."""
        self._large.abort()

    def flush(self) -> None:
        """See files through that wait for the sync of their batch."""
        self._batch.flush()


def modified_ns(entry: Metadata) -> int | None:
    """When an object was modified, in nanoseconds, as finely as its entry tells."""
    exact = exact_mtime(entry)
    if exact is not None or entry.last_modified is None:
        return exact
    return round(entry.last_modified.timestamp() * 1_000_000) * 1000
