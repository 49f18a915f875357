"""One load: a batch of files from claim to finalise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from calque import faults
from calque.errors import CalqueError, DataError
from calque.ledger import Known, Ledger, TableRow
from calque.ledger.claim import LoadStart, Wanted
from calque.ledger.files import mget
from calque.ledger.manifest import FileResult, LoadedFile, Manifest
from calque.loader.commit.our_commits import catch_up, find_rival
from calque.loader.commit.protocol import LoadRun, Overtaken
from calque.loader.commit.remove_rows import Part
from calque.loader.commit.replace import drop_sources, find_earlier_rows, replace_actions
from calque.loader.commit.tables import Lake, Snapshot
from calque.loader.commit.verify_sources import moved_sources
from calque.loader.model.data_file import DataFile
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.outcome import FileOutcome, Status, TaskResult
from calque.loader.model.plan import Engine, OnAdvance
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.compare import Decision
from calque.loader.plan.make_plan import make_plan
from calque.loader.plan.stage import Stage
from calque.loader.report import NOT_LOADED, LoadAborted, Report
from calque.loader.request.request import LoadRequest
from calque.loader.run.formats.reject import FileRefused
from calque.values.row_errors import RowErrors

KEPT = (Status.LOADED, Status.PARTIALLY_LOADED, Status.EMPTY)
"""What counts as loaded: these files get a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one load needs to know; the same for every batch of a statement."""

    request: LoadRequest
    stage: Stage
    ledger: Ledger
    lake: Lake
    table: TableRow
    engine: Engine
    format: FormatOptions
    report: Report
    advance: OnAdvance | None = None
    archive: str | None = None
    publish: Callable[[], None] | None = None
    """Makes the table, where it is not there yet."""

    def run(
        self, start: LoadStart, snapshot: Snapshot, decisions: Sequence[Decision], *, last: bool
    ) -> list[Decision]:
        """Claim, write, prepare, commit, finalise. Adds a result row for every file.

        Returns what is to be planned anew, since others got in between; it has no rows yet.
        Raises LoadAborted when the error policy gives the load up; then nothing was loaded.
        """
        decisions = self._replaceable(snapshot, decisions)
        load = LoadRun(self.ledger, self.lake, self.table, start)
        verified_at = self.ledger.now()
        claimed = load.claim([Wanted(one.file.identity, _load_seen(one)) for one in decisions])
        files = self._granted(decisions, set(claimed.granted), claimed.held)
        if not files:
            load.give_up("other loads took every file", Manifest(last=last, label=start.label))
            return []
        changed = self._replaced(decisions, files)
        outcomes: dict[str, FileOutcome] = {}
        with load.lease():
            try:
                written = self._write(start.load_id, snapshot, files, outcomes)
                manifest = self._prepare(
                    load, snapshot, files, written, outcomes, changed, verified_at, last
                )
            except BaseException as error:
                if isinstance(error, CalqueError) and self._others_came(start, files):
                    load.give_up("another ledger's load was quicker", Manifest(label=start.label))
                    return _of_files(decisions, files)
                load.give_up(_reason(error), self._failed(files, outcomes, error, last, start))
                self.report.load_ids.append(start.load_id)
                raise
            if manifest is not None:
                self._make_table(load)
                try:
                    self.report.table_version = load.commit(manifest)
                except Overtaken:
                    return _of_files(decisions, files)
        self.report.load_ids.append(start.load_id)
        if manifest is not None:
            for row in manifest.results:
                self.report.files.add(row)
        return []

    def _others_came(self, start: LoadStart, files: Sequence[StagedFile]) -> bool:
        """Whether another ledger's load brought some of the files, and may have purged them."""
        sources = tuple(LoadedFile(file.identity, 0, 0, None, 0) for file in files)
        wanted = Manifest(sources=sources, label=start.label, forced=start.force)
        try:
            fresh = self.lake.open()
            rival = find_rival(
                self.ledger, self.lake, self.table, fresh, start.base_version, wanted
            )
        except CalqueError:
            return False  # what went wrong first is what is told
        return rival is not None

    def _make_table(self, load: LoadRun) -> None:
        """Between prepare and commit: who dies after it is rolled forward, before it leaves none.

        Another may have been quicker. The commit finds out, by the id of the table that is there.
        """
        if self.publish is None:
            return
        faults.point("table.before")
        try:
            self.publish()
        except CalqueError as error:
            load.withdraw(f"the table cannot be made: {error.message}")
            raise
        faults.point("table.after")

    def _replaceable(self, snapshot: Snapshot, decisions: Sequence[Decision]) -> list[Decision]:
        """The files that can be loaded; those whose earlier rows cannot be replaced are failed."""
        if self.request.on_changed != "replace":
            return list(decisions)
        changed = [one.known for one in decisions if one.changed and one.known is not None]
        lost = find_earlier_rows(self.ledger, self.table, snapshot, changed).lost
        for one in decisions:
            if one.file.location in lost:
                self._add(one.file, Status.FAILED, lost[one.file.location])
        return [one for one in decisions if one.file.location not in lost]

    def _replaced(self, decisions: Sequence[Decision], files: Sequence[StagedFile]) -> list[Known]:
        """The records whose rows are to be replaced, now that nobody else can load these files.

        Asked for after the claim: between our look and that, another load may have ended that read
        an earlier version of a file, and its rows must go as well.
        """
        if self.request.on_changed != "replace":
            return []
        seen = {one.file.location: one for one in decisions}
        known = mget(self.ledger, self.table, [file.location for file in files])
        return [
            record
            for place, record in known.items()
            if seen[place].changed or record.load_id != _load_seen(seen[place])
        ]

    def _granted(
        self, decisions: Sequence[Decision], granted: set[str], held: dict[str, str]
    ) -> list[StagedFile]:
        files = []
        for one in decisions:
            place = one.file.location
            if place in granted:
                files.append(one.file)
            elif place in held:
                self._add(one.file, Status.IN_PROGRESS, f"held by load {held[place]}")
            else:
                self._add(one.file, Status.SKIPPED_LOADED, "another load was quicker")
        return files

    def _write(
        self,
        load_id: str,
        snapshot: Snapshot,
        files: Sequence[StagedFile],
        outcomes: dict[str, FileOutcome],
    ) -> list[DataFile]:
        """Step 2; stops as soon as the error policy says so."""
        plan = make_plan(
            self.request,
            load_id,
            files,
            self.lake.root,
            self.lake.data_prefix,
            snapshot.target,
            self.format,
            self.stage.options,
            self.lake.options,
        )
        faults.point("write.before")
        written: list[DataFile] = []
        errors = 0
        for result in self.engine.run(plan, self.advance):
            written.extend(result.data_files)
            for outcome in result.outcomes:
                outcomes[outcome.location] = outcome
                errors += outcome.error_count
            self._check_policy(result, errors)
        faults.point("write.after")
        return written

    def _check_policy(self, result: TaskResult, errors: int) -> None:
        if not self.request.aborts:
            return
        failed = next((one for one in result.outcomes if one.status is Status.FAILED), None)
        if failed is not None and not failed.error_count:
            raise DataError(f"{failed.location}: {failed.message or 'cannot be loaded'}")
        if errors >= self.request.on_error.limit:
            first = next(one for one in result.outcomes if one.error_count)
            raise DataError(f"{first.location}: {first_error(first) or 'rows cannot be loaded'}")

    def _prepare(
        self,
        load: LoadRun,
        snapshot: Snapshot,
        files: Sequence[StagedFile],
        written: list[DataFile],
        outcomes: dict[str, FileOutcome],
        changed: Sequence[Known],
        verified_at: int,
        last: bool,
    ) -> Manifest | None:
        """Step 3; None when nothing is left to be committed."""
        faults.point("prepare.before")
        kept = [one for one in files if _status(outcomes.get(one.location)) in KEPT]
        moved = moved_sources(self.stage, kept)
        for place, reason in moved.items():
            outcomes[place] = FileOutcome(place, Status.CHANGED, message=reason)
        names = {one.location for one in kept} - set(moved)
        # As the table is now: others may have rewritten data files since the load began.
        fresh = self.lake.open() if changed else snapshot
        if changed:
            catch_up(self.ledger, self.lake, self.table, fresh, load.start.base_version)
        old = find_earlier_rows(
            self.ledger, self.table, fresh, (one for one in changed if one.location in names)
        )
        for place, reason in old.lost.items():
            outcomes[place] = FileOutcome(place, Status.FAILED, message=reason)
        dropped = {*moved, *old.lost}
        kept = [one for one in kept if one.location not in dropped]
        data = drop_sources(self.lake, load.load_id, written, dropped)
        actions = [self.lake.encode(file, snapshot.target) for file in data if file.rows]
        removals, shifted = replace_actions(
            self.ledger, self.table, self.lake, fresh, load.load_id, old
        )
        results = tuple(_result(one, outcomes.get(one.location)) for one in files)
        manifest = Manifest(
            actions=(*removals, *actions),
            sources=tuple(_sources(kept, outcomes, data, verified_at)),
            results=results,
            errors=_errors(outcomes),
            moved=shifted,
            purge=self.request.purge or self.archive is not None,
            archive=self.archive,
            last=last,
            label=load.start.label,
            # Replacing takes the rows of a file's earlier load away: it has to know that one.
            forced=self.request.force and self.request.on_changed != "replace",
        )
        if not kept:
            load.give_up("no file could be loaded", manifest)
            for row in results:
                self.report.files.add(row)
            return None
        load.prepare(manifest)
        return manifest

    def _failed(
        self,
        files: Sequence[StagedFile],
        outcomes: dict[str, FileOutcome],
        error: BaseException,
        last: bool,
        start: LoadStart,
    ) -> Manifest:
        """The record of a load that was given up: nothing loaded, every error kept."""
        results = []
        for file in files:
            outcome = outcomes.get(file.location)
            row = _result(file, outcome)
            message = row.message or f"{NOT_LOADED}{_reason(error)}"
            results.append(replace(row, status=Status.FAILED, rows_loaded=0, message=message))
        if isinstance(error, DataError):
            for row in results:
                self.report.files.add(row)
        errors = _errors(outcomes)
        if isinstance(error, FileRefused):
            refused = error.row_error
            errors[refused.file] = RowErrors.of([refused]).packed
        return Manifest(results=tuple(results), errors=errors, last=last, label=start.label)

    def _add(self, file: StagedFile, status: Status, message: str | None) -> None:
        self.report.files.add(
            FileResult(file.location, file.name, status, bytes=file.identity.size, message=message)
        )


def first_error(outcome: FileOutcome) -> str | None:
    """The first error of a file with its position, in one line."""
    if not outcome.errors:
        return outcome.message if outcome.error_count else None
    one = outcome.errors[0]
    place = f"line {one.line}" if one.line else f"record {one.record}"
    if one.column:
        place += f", column {one.column}"
    if one.character:
        place += f", character {one.character}"
    return f"{place}: {one.message}"


def abort_of(error: DataError, report: Report) -> LoadAborted:
    """The error a statement ends with, with its report."""
    aborted = LoadAborted(
        error.message, hint=error.hint or "Nothing was loaded. ON_ERROR says what else may happen."
    )
    aborted.report = report
    return aborted


def _of_files(decisions: Sequence[Decision], files: Sequence[StagedFile]) -> list[Decision]:
    places = {file.location for file in files}
    return [one for one in decisions if one.file.location in places]


def _load_seen(one: Decision) -> str | None:
    return one.known.load_id if one.known else None


def _status(outcome: FileOutcome | None) -> Status:
    return outcome.status if outcome is not None else Status.FAILED


def _result(file: StagedFile, outcome: FileOutcome | None) -> FileResult:
    if outcome is None:
        return FileResult(file.location, file.name, Status.FAILED, bytes=file.identity.size)
    return FileResult(
        location=file.location,
        name=file.name,
        status=outcome.status,
        rows_parsed=outcome.rows_parsed,
        rows_loaded=outcome.rows_loaded,
        errors=outcome.error_count,
        first_error=first_error(outcome),
        bytes=file.identity.size,
        seconds=outcome.seconds,
        message=outcome.message,
    )


def _sources(
    files: Sequence[StagedFile],
    outcomes: dict[str, FileOutcome],
    data: Sequence[DataFile],
    verified_at: int,
) -> list[LoadedFile]:
    parts: dict[str, list[Part]] = defaultdict(list)
    for file in data:
        for span in file.spans:
            if span.rows:
                parts[span.location].append((file.path, span.first_row, span.rows))
    return [
        LoadedFile(
            identity=one.identity,
            rows=outcomes[one.location].rows_loaded,
            errors=outcomes[one.location].error_count,
            content_hash=outcomes[one.location].content_hash,
            verified_at=verified_at,
            parts=tuple(parts.get(one.location, ())),
            about=one.about,
        )
        for one in files
    ]


def _errors(outcomes: dict[str, FileOutcome]) -> dict[str, bytes]:
    return {place: RowErrors.of(one.errors).packed for place, one in outcomes.items() if one.errors}


def _reason(error: BaseException) -> str:
    if isinstance(error, CalqueError):
        return error.message
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
