"""One load: a batch of files from claim to finalise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from calque import faults, tracing
from calque.errors import CalqueError, DataError
from calque.ledger import Known, Ledger, TableRow
from calque.ledger.claim import LoadStart, Wanted
from calque.ledger.files import mget
from calque.ledger.manifest import FileResult, LoadedFile, Manifest
from calque.loader.commit.build_manifest import errors_of, is_kept, result_of, sources_of
from calque.loader.commit.commit_load import Overtaken
from calque.loader.commit.our_commits import catch_up, find_rival
from calque.loader.commit.protocol import LoadRun
from calque.loader.commit.replace import drop_sources, find_earlier_rows, replace_actions
from calque.loader.commit.tables import Lake, Snapshot
from calque.loader.model.data_file import DataFile
from calque.loader.model.outcome import FileOutcome, Status, TaskResult, first_error
from calque.loader.model.plan import Engine, OnAdvance, WritePlan
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.compare import Decision
from calque.loader.plan.stage import Stage
from calque.loader.plan.verify_sources import find_moved_sources
from calque.loader.report import NOT_LOADED
from calque.loader.request.request import LoadRequest
from calque.loader.run.formats.refusal import FileRefused
from calque.values.row_errors import RowErrors


@dataclass(slots=True)
class BatchResult:
    """What became of a batch, as far as it came: filled even where an error ends it."""

    rows: list[FileResult] = field(default_factory=list)
    load_id: str | None = None
    """None where no load is to be told of: it got no file, or others were quicker."""
    table_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One load of some files by a plan; its ``result`` is what the report is told of it."""

    request: LoadRequest
    stage: Stage
    ledger: Ledger
    lake: Lake
    table: TableRow
    engine: Engine
    plan: WritePlan
    """Made before the claim; what the claim does not grant is taken out of it."""
    advance: OnAdvance | None = None
    tell_phase: Callable[[str], None] = lambda phase: None
    archive: str | None = None
    publish: Callable[[], None] | None = None
    """Makes the table, where it is not there yet."""
    result: BatchResult = field(default_factory=BatchResult)

    def run(
        self, start: LoadStart, snapshot: Snapshot, decisions: Sequence[Decision], *, last: bool
    ) -> list[Decision]:
        """Claim, write, prepare, commit, finalise. The result has a row for every file.

        Returns what is to be planned anew, since others got in between; it has no rows yet.
        Raises DataError when the error policy gives the load up; then nothing was loaded.
        """
        decisions = self._fail_irreplaceable(snapshot, decisions)
        load = LoadRun(
            self.ledger, self.lake, self.table, start, makes_table=self.publish is not None
        )
        with load.released_if_stopped():
            return self._run_load(load, snapshot, decisions, last=last)

    def _run_load(
        self, load: LoadRun, snapshot: Snapshot, decisions: Sequence[Decision], *, last: bool
    ) -> list[Decision]:
        start = load.start
        verified_at = self.ledger.now()
        with tracing.span("load.claim", files=len(decisions)):
            claimed = load.claim([Wanted(one.file.identity, _load_seen(one)) for one in decisions])
        files = self._take_granted(decisions, set(claimed.granted), claimed.held)
        if not files:
            load.give_up("other loads took every file", Manifest(last=last, label=start.label))
            return []
        changed = self._records_to_replace(decisions, files)
        outcomes: dict[str, FileOutcome] = {}
        with load.lease():
            try:
                plan = self.plan.narrow(start.load_id, {file.location for file in files})
                with tracing.span("load.write", files=len(files), engine=self.engine.name):
                    written = self._write(plan, outcomes)
                with tracing.span("load.prepare"):
                    manifest = self._prepare(
                        load, snapshot, files, written, outcomes, changed, verified_at, last
                    )
            except BaseException as error:
                if isinstance(error, CalqueError) and self._is_loaded_by_others(start, files):
                    load.give_up("another ledger's load was quicker", Manifest(label=start.label))
                    return _decisions_of(decisions, files)
                load.give_up(
                    _reason(error), self._build_failed_manifest(files, outcomes, error, last, start)
                )
                self.result.load_id = start.load_id
                raise
            if manifest is not None:
                self._make_table(load)
                try:
                    with tracing.span("load.commit"):
                        self.result.table_version = load.commit(manifest)
                except Overtaken:
                    return _decisions_of(decisions, files)
        self.result.load_id = start.load_id
        if manifest is not None:
            self.result.rows.extend(manifest.results)
        return []

    def _is_loaded_by_others(self, start: LoadStart, files: Sequence[StagedFile]) -> bool:
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

    def _fail_irreplaceable(
        self, snapshot: Snapshot, decisions: Sequence[Decision]
    ) -> list[Decision]:
        """The files that can be loaded; those whose earlier rows cannot be replaced are failed."""
        if self.request.on_changed != "replace":
            return list(decisions)
        changed = [one.known for one in decisions if one.changed and one.known is not None]
        lost = find_earlier_rows(self.ledger, self.table, snapshot, changed).lost
        for one in decisions:
            if one.file.location in lost:
                self._add(one.file, Status.FAILED, lost[one.file.location])
        return [one for one in decisions if one.file.location not in lost]

    def _records_to_replace(
        self, decisions: Sequence[Decision], files: Sequence[StagedFile]
    ) -> list[Known]:
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

    def _take_granted(
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

    def _write(self, plan: WritePlan, outcomes: dict[str, FileOutcome]) -> list[DataFile]:
        """Step 2; stops as soon as the error policy says so."""
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
        self.tell_phase("committing")
        faults.point("prepare.before")
        kept = [one for one in files if is_kept(outcomes.get(one.location))]
        moved = find_moved_sources(self.stage, kept)
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
        results = tuple(result_of(one, outcomes.get(one.location)) for one in files)
        manifest = Manifest(
            actions=(*removals, *actions),
            sources=tuple(sources_of(kept, outcomes, data, verified_at)),
            results=results,
            errors=errors_of(outcomes),
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
            self.result.rows.extend(results)
            return None
        load.prepare(manifest)
        return manifest

    def _build_failed_manifest(
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
            row = result_of(file, outcome)
            message = row.message or f"{NOT_LOADED}{_reason(error)}"
            results.append(replace(row, status=Status.FAILED, rows_loaded=0, message=message))
        if isinstance(error, DataError):
            self.result.rows.extend(results)
        errors = errors_of(outcomes)
        if isinstance(error, FileRefused):
            refused = error.row_error
            errors[refused.file] = RowErrors.of([refused]).packed
        return Manifest(results=tuple(results), errors=errors, last=last, label=start.label)

    def _add(self, file: StagedFile, status: Status, message: str | None) -> None:
        self.result.rows.append(
            FileResult(file.location, file.name, status, bytes=file.identity.size, message=message)
        )


def _decisions_of(decisions: Sequence[Decision], files: Sequence[StagedFile]) -> list[Decision]:
    places = {file.location for file in files}
    return [one for one in decisions if one.file.location in places]


def _load_seen(one: Decision) -> str | None:
    return one.known.load_id if one.known else None


def _reason(error: BaseException) -> str:
    if isinstance(error, CalqueError):
        return error.message
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
