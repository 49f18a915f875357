"""Compare a listing with the ledger: what is new, what changed, what is there already.

Listing and records both come in key order, so they are joined as they stream by: memory does not
grow with the stage, and a limit on files can stop both early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from calque.errors import CalqueError
from calque.ledger import Known, Ledger, TableRow, Verdict, judge
from calque.ledger.files import NAMES_AT_ONCE, Seen, mget, refresh, renew, scan
from calque.ledger.identity import is_stale, is_uncertain, micros, needs_renewal
from calque.loader.model.content_hash import content_hash
from calque.loader.model.outcome import Status
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.stage import Missing, Stage, too_young
from calque.loader.request.request import LoadRequest
from calque.values import SourceIdentity

WINDOW = 64
FLUSH = 5000


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to become of a staged file; ``status`` None: it is to be loaded."""

    file: StagedFile
    status: Status | None = None
    message: str | None = None
    known: Known | None = None
    changed: bool = False


@dataclass(frozen=True, slots=True)
class _Pair:
    file: StagedFile
    known: Known | None


class Comparison:
    """One pass over a stage. Renews and refreshes records on the way unless it only looks."""

    def __init__(
        self,
        stage: Stage,
        request: LoadRequest,
        ledger: Ledger,
        table: TableRow | None,
        *,
        look_only: bool = False,
    ) -> None:
        self._stage = stage
        self._request = request
        self._ledger = ledger
        self._table = table
        self._look_only = look_only
        self._now = ledger.shared_now()
        self._renew: list[str] = []
        self._refresh: list[Seen] = []

    def __iter__(self) -> Iterator[Decision]:
        try:
            with ThreadPoolExecutor(8, thread_name_prefix="calque-hash") as pool:
                yield from self._checked(self._first_look(), pool)
        except GeneratorExit:  # a limit was reached: what was met on the way is kept alive too
            with suppress(CalqueError):
                self._flush()
            raise
        self._flush()

    def again(self, decisions: Iterable[Decision]) -> Iterator[Decision]:
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
            if self._request.force or record is None or record.load_id == seen:
                yield replace(one, known=record)
            elif judge(record, one.file.identity) is not Verdict.DIFFERENT:
                yield Decision(one.file, Status.SKIPPED_LOADED, None, record)
            else:
                yield self._changed(one.file, record)

    def _first_look(self) -> Iterator[Decision | _Pair]:
        """Decisions where metadata suffices; pairs where the content has to be asked."""
        if self._stage.named:
            yield from self._by_name()
            return
        force, renew_before = self._request.force, self._now + self._ledger.life // 4
        for file, known in self._join(self._stage.list()):
            # The common case of a stage that was loaded before, decided without a call.
            if (
                known is not None
                and known.etag is not None
                and known.etag == file.identity.etag
                and known.expires_at >= renew_before
                and not is_stale(known, file.identity)
                and not force
            ):
                yield Decision(file, Status.SKIPPED_LOADED, None, known)
            else:
                yield self._decide(file, known)
        yield from map(_missing, self._stage.unnamed)

    def _by_name(self) -> Iterator[Decision | _Pair]:
        found = self._stage.listed() if self._request.files else self._stage.list()
        while chunk := list(islice(found, NAMES_AT_ONCE)):
            places = [one.location for one in chunk]
            records = mget(self._ledger, self._table, places) if self._table else {}
            for one in chunk:
                if isinstance(one, Missing):
                    yield _missing(one)
                else:
                    yield self._decide(one, records.get(one.location))

    def _join(self, files: Iterable[StagedFile]) -> Iterator[tuple[StagedFile, Known | None]]:
        if self._table is None:
            yield from ((file, None) for file in files)
            return
        records = scan(self._ledger, self._table, self._stage.prefix)
        known = next(records, None)
        last = ""
        for file in files:
            if file.location < last:  # a service that lists in another order
                yield file, mget(self._ledger, self._table, [file.location]).get(file.location)
                continue
            last = file.location
            while known is not None and known.location < last:
                known = next(records, None)
            yield file, known if known is not None and known.location == last else None

    def _decide(self, file: StagedFile, known: Known | None) -> Decision | _Pair:
        if self._request.force:
            return Decision(file, known=known)
        if known is None:
            return self._new(file)
        if needs_renewal(known, self._now, self._ledger.life):
            self._keep(known.location)
        verdict = judge(known, file.identity)
        if verdict is Verdict.SAME:
            if is_stale(known, file.identity):
                self._retell(known, file)
            return Decision(file, Status.SKIPPED_LOADED, None, known)
        if verdict is Verdict.CHECK:
            return _Pair(file, known)
        return self._changed(file, known)

    def _new(self, file: StagedFile) -> Decision:
        if too_young(file, self._request.min_age):
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

    def _changed(self, file: StagedFile, known: Known) -> Decision:
        if self._request.on_changed == "skip":
            return Decision(
                file,
                Status.CHANGED,
                f"changed since load {known.load_id}; left out by on_changed=skip",
                known,
            )
        if too_young(file, self._request.min_age):
            return Decision(file, Status.IN_PROGRESS, "younger than the minimum age", known)
        return Decision(file, known=known, changed=True)

    def _checked(
        self, first: Iterator[Decision | _Pair], pool: ThreadPoolExecutor
    ) -> Iterator[Decision]:
        """Settle the pairs by hashing several files at once; the order stays."""
        waiting: deque[Decision | Future[Decision]] = deque()
        for one in first:
            if isinstance(one, Decision) and not waiting:
                yield one
                continue
            waiting.append(pool.submit(self._by_content, one) if isinstance(one, _Pair) else one)
            if len(waiting) >= WINDOW:
                yield _settled(waiting.popleft())
        while waiting:
            yield _settled(waiting.popleft())

    def _by_content(self, pair: _Pair) -> Decision:
        assert pair.known is not None
        try:
            found = hash_of(self._stage, pair.file)
        except CalqueError as error:
            return Decision(pair.file, Status.CHANGED, f"cannot be compared: {error.message}")
        if found != pair.known.content_hash:
            return self._changed(pair.file, pair.known)
        self._retell(pair.known, pair.file)
        touched = pair.known.last_modified != micros(pair.file.identity.last_modified)
        message = "touched, but its content is the same" if touched else None
        return Decision(pair.file, Status.SKIPPED_LOADED, message, pair.known)

    def _keep(self, location: str) -> None:
        self._renew.append(location)
        if len(self._renew) >= FLUSH:
            self._flush()

    def _retell(self, known: Known, file: StagedFile) -> None:
        self._refresh.append((known, file.identity, file.about))
        if len(self._refresh) >= FLUSH:
            self._flush()

    def _flush(self) -> None:
        renewals, self._renew = self._renew, []
        refreshed, self._refresh = self._refresh, []
        if self._look_only or self._table is None:
            return
        if renewals:
            renew(self._ledger, self._table, renewals)
        if refreshed:
            refresh(self._ledger, self._table, refreshed)


def hash_of(stage: Stage, file: StagedFile) -> str:
    """The content hash of a staged file as it is now."""
    operator = stage.operator
    path = stage.path_of(file)
    can_pin = operator.capability.read_with_if_match
    return content_hash(operator.read_stream(path, if_match=file.identity.pin if can_pin else None))


def _settled(one: Decision | Future[Decision]) -> Decision:
    return one.result() if isinstance(one, Future) else one


def _missing(one: Missing) -> Decision:
    identity = SourceIdentity(one.location, 0)
    file = StagedFile(one.location, one.name, identity)
    return Decision(file, Status.FAILED, one.why)
