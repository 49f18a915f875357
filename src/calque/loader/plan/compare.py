"""Compare a listing with the ledger: what is new, what changed, what is there already.

Listing and records both come in key order, so they are joined as they stream by: memory does not
grow with the stage, and a limit on files can stop both early.

Nothing is written: what a record needs is part of the decision, and ``after.upkeep`` sees to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from calque.errors import CalqueError, DataError, NotFound
from calque.ledger import Known, Ledger, TableRow, Verdict, judge
from calque.ledger.files import NAMES_AT_ONCE, mget, scan
from calque.ledger.identity import is_settled, is_stale, is_uncertain, micros, needs_renewal
from calque.loader.model.content_hash import content_hash, copied_to
from calque.loader.model.outcome import Status
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.stage import Missing, Stage, is_too_young
from calque.loader.request.request import LoadRequest
from calque.values import SourceIdentity

WINDOW = 64
"""Files that may wait behind one that is being hashed, so that the order stays."""


class Decision(NamedTuple):
    """What is to become of a staged file; ``status`` None: it is to be loaded."""

    file: StagedFile
    status: Status | None = None
    message: str | None = None
    known: Known | None = None
    changed: bool = False
    renewal_due: bool = False
    """Its record ends soon, and the file is still there."""
    record_outdated: bool = False
    """The bytes are those of the record, but etag, time or version are others by now."""


DataFileReader = Callable[[str], Iterable[bytes]]
"""The bytes of a data file of the table, by its path in it."""

_make = partial(tuple.__new__, Decision)
"""What ``Decision._make`` does, in a third of its time."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """A file whose metadata and record leave it open: its content decides."""

    file: StagedFile
    known: Known
    renewal_due: bool


class Comparison:
    """One pass over a stage; reads the ledger and, where it must, the files."""

    def __init__(
        self,
        stage: Stage,
        request: LoadRequest,
        ledger: Ledger,
        table: TableRow | None,
        read_data_file: DataFileReader,
    ) -> None:
        self._stage = stage
        self._request = request
        self._ledger = ledger
        self._table = table
        self._read_data_file = read_data_file
        self._now = ledger.shared_now()

    def __iter__(self) -> Iterator[Decision]:
        with ThreadPoolExecutor(8, thread_name_prefix="calque-hash") as pool:
            yield from self._settle_pairs(self._compare_metadata(), pool)

    def decide_again(self, decisions: Iterable[Decision]) -> Iterator[Decision]:
        """Decide anew of files that were to be loaded, by what the ledger knows by now.

        A record that was not there before is of a load that ended meanwhile. It counts unless it is
        of other bytes: whether those of a moment ago were touched since is asked the next time.
        """
        assert self._table is not None, "there was a table to load into"
        waiting = list(decisions)
        known = mget(self._ledger, self._table, [one.file.location for one in waiting])
        for one in waiting:
            record = known.get(one.file.location)
            seen = one.known.load_id if one.known else None
            if self._request.force or (record is not None and record.load_id == seen):
                yield one._replace(known=record)
            elif record is None:
                yield self._decide_new(one.file) if seen is None else one._replace(known=None)
            elif judge(record, one.file.identity) is not Verdict.DIFFERENT:
                yield Decision(one.file, Status.SKIPPED_LOADED, None, record)
            else:
                yield self._decide_changed(one.file, record)

    def _compare_metadata(self) -> Iterator[Decision | _Pair]:
        """Decisions where metadata suffices; pairs where the content has to be asked."""
        if self._stage.is_named_one_by_one:
            return self._look_up_by_name()
        return chain(self._compare_listing(), self._decide_unnamed())

    def _decide_unnamed(self) -> Iterator[Decision]:
        yield from map(_decide_missing, self._stage.unnamed)  # known once all are listed

    def _compare_listing(self) -> Iterator[Decision | _Pair]:
        """Join listing and records; one loop, because every file of a stage goes through it."""
        table, force = self._table, self._request.force
        renew_before = self._now + self._ledger.life // 4
        loaded_before = Status.SKIPPED_LOADED
        records = iter(()) if table is None else scan(self._ledger, table, self._stage.prefix)
        following = next(records, None)
        last = ""
        for file in self._stage.list():
            place = file.location
            known = None
            if place < last and table is not None:  # a service that lists in another order
                known = mget(self._ledger, table, [place]).get(place)
            else:
                last = place
                while following is not None and following.location < place:
                    following = next(records, None)
                if following is not None and following.location == place:
                    known = following
            if known is not None and not force and is_settled(known, file.identity, renew_before):
                yield _make((file, loaded_before, None, known, False, False, False))
            else:
                yield self._decide(file, known)

    def _look_up_by_name(self) -> Iterator[Decision | _Pair]:
        found = self._stage.look_up_files() if self._request.files else self._stage.list()
        while chunk := list(islice(found, NAMES_AT_ONCE)):
            places = [one.location for one in chunk]
            records = mget(self._ledger, self._table, places) if self._table else {}
            for one in chunk:
                if isinstance(one, Missing):
                    yield _decide_missing(one)
                else:
                    yield self._decide(one, records.get(one.location))

    def _decide(self, file: StagedFile, known: Known | None) -> Decision | _Pair:
        if self._request.force:
            return Decision(file, known=known)
        if known is None:
            return self._decide_new(file)
        due = needs_renewal(known, self._now, self._ledger.life)
        verdict = judge(known, file.identity)
        if verdict is Verdict.SAME:
            outdated = is_stale(known, file.identity)
            return Decision(
                file,
                Status.SKIPPED_LOADED,
                known=known,
                renewal_due=due,
                record_outdated=outdated,
            )
        if verdict is Verdict.CHECK:
            return _Pair(file, known, due)
        return self._decide_changed(file, known)._replace(renewal_due=due)

    def _decide_new(self, file: StagedFile) -> Decision:
        if is_too_young(file, self._request.min_age):
            return Decision(file, Status.IN_PROGRESS, "younger than the minimum age")
        first = self._table.first_load_at if self._table else None
        forgotten = self._table.forgotten_until if self._table else None
        if not self._request.load_uncertain_files and is_uncertain(
            file.identity, first, self._now, self._ledger.life, forgotten
        ):
            return Decision(
                file,
                Status.SKIPPED_UNCERTAIN,
                "older than the records that are kept: it may have been loaded; "
                "load_uncertain_files loads it",
            )
        return Decision(file)

    def _decide_changed(self, file: StagedFile, known: Known) -> Decision:
        if self._request.on_changed == "skip":
            return Decision(
                file,
                Status.CHANGED,
                f"changed since load {known.load_id}; left out by on_changed=skip",
                known,
            )
        if is_too_young(file, self._request.min_age):
            return Decision(file, Status.IN_PROGRESS, "younger than the minimum age", known)
        return Decision(file, known=known, changed=True)

    def _settle_pairs(
        self, first: Iterator[Decision | _Pair], pool: ThreadPoolExecutor
    ) -> Iterator[Decision]:
        """Settle the pairs by hashing several files at once; the order stays."""
        waiting: deque[Decision | Future[Decision]] = deque()
        for one in first:
            if not waiting and isinstance(one, Decision):
                yield one
                continue
            waiting.append(
                pool.submit(self._compare_content, one) if isinstance(one, _Pair) else one
            )
            if len(waiting) >= WINDOW:
                yield _result_of(waiting.popleft())
        while waiting:
            yield _result_of(waiting.popleft())

    def _compare_content(self, pair: _Pair) -> Decision:
        known, file, due = pair.known, pair.file, pair.renewal_due
        try:
            loaded = self._hash_known(known)
            is_same = loaded is not None and loaded == hash_of(self._stage, file)
        except CalqueError as error:
            reason = f"cannot be compared: {error.message}"
            return Decision(file, Status.CHANGED, reason, known, renewal_due=due)
        if not is_same:
            return self._decide_changed(file, known)._replace(renewal_due=due)
        touched = known.last_modified != micros(file.identity.last_modified)
        return Decision(
            file,
            Status.SKIPPED_LOADED,
            "touched, but its content is the same" if touched else None,
            known,
            renewal_due=due,
            record_outdated=True,
        )

    def _hash_known(self, known: Known) -> str | None:
        """The hash of what was loaded; None where nobody can tell it any more."""
        path = copied_to(known.content_hash or "")
        if path is None:
            return known.content_hash
        try:
            return content_hash(self._read_data_file(path))
        except NotFound:  # compacted and cleaned up: the bytes are nowhere
            return None


def hash_of(stage: Stage, file: StagedFile) -> str:
    """The content hash of a staged file as it is now."""
    operator = stage.operator
    path = stage.path_of(file)
    can_pin = operator.capability.read_with_if_match
    return content_hash(operator.read_stream(path, if_match=file.identity.pin if can_pin else None))


def _result_of(one: Decision | Future[Decision]) -> Decision:
    return one.result() if isinstance(one, Future) else one


def _decide_missing(one: Missing) -> Decision:
    identity = SourceIdentity(one.location, 0)
    file = StagedFile(one.location, one.name, identity)
    return Decision(file, Status.FAILED, one.why)


def changed_error(one: Decision) -> DataError:
    """ON_CHANGED = ERROR, of a file that changed."""
    assert one.known is not None, "what changed was known"
    return DataError(
        f"{one.file.location} changed since load {one.known.load_id}",
        hint="Nothing was loaded. Choose on_changed=reload, replace or skip.",
    )
