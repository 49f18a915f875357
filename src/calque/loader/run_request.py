"""One run of a request: list, compare, plan, run, commit, record, report. In that order.

Comparing and planning write nothing; the plan is made here, before anything is claimed, for a load
as for a dry run; and what every step returns becomes the report here and nowhere else.
"""

from __future__ import annotations

import getpass
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from calque.config import Settings
from calque.errors import CalqueError, ConditionNotMatch, DataError, LoadAborted, NotFound
from calque.ledger import Ledger, TableRow
from calque.ledger.claim import LoadStart
from calque.ledger.expire import OldLoad, expire_some
from calque.ledger.finish import FileResult
from calque.ledger.history import LoadRow, results_of
from calque.ledger.lease import this_process
from calque.loader.after.archive import check_archive
from calque.loader.after.purge import purge_sources
from calque.loader.after.upkeep import RecordUpkeep
from calque.loader.batch import Batch, BatchResult
from calque.loader.commit.rebuild import ledger_to_look
from calque.loader.commit.sidecars import Sidecars
from calque.loader.commit.tables import Lake, Snapshot, open_table
from calque.loader.commit.target import Target
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.outcome import Status
from calque.loader.model.plan import Engine, OnAdvance, TargetSchema, WritePlan
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.compare import Comparison, Decision
from calque.loader.plan.dialect import as_property, choose_dialect
from calque.loader.plan.evolve import SAMPLE, evolve_table, schema_for_new_table
from calque.loader.plan.failed_files import FailedFiles
from calque.loader.plan.label import (
    count_uses_of_label,
    find_loaded_by_label,
    find_replay,
    new_load_id,
)
from calque.loader.plan.make_plan import choose_format, choose_match, make_plan
from calque.loader.plan.preview import preview, validate
from calque.loader.plan.stage import Stage
from calque.loader.report import Report
from calque.loader.request.render import render
from calque.loader.request.request import LoadRequest

EngineChoice = Callable[[int, bool], Engine]
"""Bytes to be read and whether rows are transformed → where to run."""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load has come, for a bar."""

    files: int
    files_total: int
    rows: int
    bytes: int
    bytes_total: int


class RequestRun:
    """One run of a request: killed at any step and run again, each file counts once."""

    def __init__(
        self,
        request: LoadRequest,
        settings: Settings,
        ledger: Ledger,
        engine: EngineChoice,
        progress: Callable[[LoadProgress], None] | None = None,
        failed: FailedFiles | None = None,
    ) -> None:
        self.request = request
        self.ledger = ledger
        self._settings = settings
        self._choose_engine = engine
        self._engine: Engine | None = None
        self._progress = progress
        self._failed = failed
        self._archive: str | None = None
        self._label_uses = 0
        self._sampled = 0
        self._owner = f"{this_process()}#{secrets.token_hex(4)}"
        self._begin()

    def _begin(self) -> None:
        asked = self.request
        self._target = Target(open_table(asked.into, self._settings), self.ledger)
        self.report = Report(
            self.lake.display,
            forced=asked.force,
            dry_run=asked.dry_run,
            only_failed=asked.return_failed_only,
        )

    @property
    def lake(self) -> Lake:
        """The table that the request names."""
        return self._target.lake

    def run(self) -> Report:
        """Do it. Raises LoadAborted (with the report) when the error policy gives it up."""
        begun = time.monotonic()
        try:
            while not self._run_unless_made():
                # Another loader made the table meanwhile: what it loaded counts.
                self._begin()
        except DataError as error:
            self.report.seconds = time.monotonic() - begun
            raise _abort_error(error, self.report) from error
        self.report.seconds = time.monotonic() - begun
        return self.report

    def _run_unless_made(self) -> bool:
        """Run; False where a table that was to be made is there by now, and not by us.

        Whatever failed then may be the work of the other, which may have purged what it loaded.
        """
        try:
            self._run()
        except CalqueError:
            if not self._target.is_made_by_others():
                raise
            return False
        return not self._target.is_made_by_others()

    def _run(self) -> None:
        snapshot = self._open_table()
        if snapshot is None or not self._look_only:
            self._run_on(snapshot)
            return
        with ledger_to_look(self.ledger, self.lake, snapshot) as ledger:
            self._target = Target(self.lake, ledger)
            self._run_on(snapshot)

    def _run_on(self, snapshot: Snapshot | None) -> None:
        stage = self._open_stage(snapshot)
        table = self._find_or_register(snapshot)
        if table is not None and not self._look_only:
            self._clean_up_after_the_dead(table, stage)
        self._label_uses = count_uses_of_label(self._target.ledger, table, self.request)
        if table is not None and (done := find_replay(self._target.ledger, table, self.request)):
            self._report_replay(done)
            return
        if self._look_only:
            self._preview(stage, snapshot, [one.file for one in self._decide(stage, table)])
        else:
            self._load(stage, snapshot, table)
        self.report.ignored = stage.ignored
        if self._target.taken_in:
            self.report.notes.append(
                f"{self._target.taken_in} loads of other ledgers were taken in from the table's log"
            )
        if not self.report.matched:
            stage.must_be_there()

    @property
    def _look_only(self) -> bool:
        return self.request.dry_run or self.request.validation is not None

    def _open_table(self) -> Snapshot | None:
        return self._target.open(
            may_be_made=self.request.create, partition_by=self.request.partition_by
        )

    def _open_stage(self, snapshot: Snapshot | None) -> Stage:
        asked = self.request
        stage = Stage(asked.stage, self._settings, files=asked.files, pattern=asked.pattern)
        has_place = self._target.has_place(snapshot)
        if has_place:
            stage.leave_out(self.lake.place)
        if asked.archive is not None:
            root = self.lake.root if has_place else None
            self._archive = check_archive(asked.archive, self._settings, stage, root)
        return stage

    def _find_or_register(self, snapshot: Snapshot | None) -> TableRow | None:
        if snapshot is None:
            return None
        return self._target.find(snapshot) if self._look_only else self._register(snapshot)

    def _register(self, snapshot: Snapshot) -> TableRow:
        table, notes = self._target.register(snapshot)
        self.report.notes.extend(notes)
        return table

    def _clean_up_after_the_dead(self, table: TableRow, stage: Stage) -> None:
        """What dead loads left: finish or abort them, remove what they had queued."""
        lease = self.request.lease_seconds
        self.report.recovered = self._target.recover(table, self._owner, lease)
        self._purge(table, stage)

    def _purge(self, table: TableRow, stage: Stage) -> None:
        done = purge_sources(self._target.ledger, table, stage, self._settings)
        self.report.purged += done.removed
        self.report.archived += done.archived
        self.report.notes.extend(done.troubles)

    def _expire(self, table: TableRow) -> None:
        """A few records whose time is over, with what their loads left: nobody needs a cron job."""
        sidecars = Sidecars(self.lake.place)

        def release(load: OldLoad) -> bool:
            if not load.adopted:
                sidecars.forget(load.load_id)
            return True

        # What could not go now goes the next time; the load itself is over and was right.
        with suppress(CalqueError):
            expire_some(self._target.ledger, table, release)

    def _decide(
        self, stage: Stage, table: TableRow | None, upkeep: RecordUpkeep | None = None
    ) -> Iterator[Decision]:
        """Files to be loaded, within the limits; the others become result rows on the way."""
        if self.request.on_changed == "error":
            self._refuse_changed(stage, table)
        done = find_loaded_by_label(self._target.ledger, table, self.request)
        count = size = 0
        for one in Comparison(stage, self.request, self._target.ledger, table):
            if upkeep is not None:
                upkeep.note(one)
            if one.status is None and one.file.location in done:
                one = replace(one, status=Status.SKIPPED_LOADED, message="loaded by this label")
            self.report.matched += 1
            if one.status is not None:
                self._report_skipped(one)
                continue
            if self._failed is not None and not self._failed.take(one.file):
                continue
            if self.request.max_files is not None and count >= self.request.max_files:
                return
            if self.request.size_limit is not None and size >= self.request.size_limit:
                return
            count += 1
            size += one.file.identity.size
            yield one

    def _refuse_changed(self, stage: Stage, table: TableRow | None) -> None:
        """ON_CHANGED = ERROR: the whole stage is looked at before the first file is loaded."""
        for one in Comparison(stage, self.request, self._target.ledger, table):
            if one.changed and one.known is not None:
                raise _changed_error(one)

    def _preview(
        self, stage: Stage, snapshot: Snapshot | None, files: Sequence[StagedFile]
    ) -> None:
        """Everything of a load but the claiming and writing."""
        if not files:
            return
        format = self._choose_format(stage, snapshot, files)
        if snapshot is not None:
            target = snapshot.target
        else:
            engine = self._engine_for(0)
            schema = schema_for_new_table(self.request, engine, files, format, stage.options)
            target = TargetSchema(schema=schema, partition_columns=self.request.partition_by)
        root = self.lake.root if snapshot is not None else ""
        plan = self._plan(stage, files, root, target, format)
        asked = self.request.validation
        found = (
            preview(plan) if asked is None else validate(asked, self._engine_for(plan.bytes), plan)
        )
        self.report.plan, self.report.sample = found.plan, found.sample
        self.report.row_errors = found.row_errors
        self._report_rows(found.rows)

    def _plan(
        self,
        stage: Stage,
        files: Sequence[StagedFile],
        root: str,
        target: TargetSchema,
        format: FormatOptions,
    ) -> WritePlan:
        return make_plan(
            self.request,
            files,
            root,
            self.lake.data_prefix,
            target,
            format,
            stage.options,
            self.lake.options,
        )

    def _load(self, stage: Stage, snapshot: Snapshot | None, table: TableRow | None) -> None:
        self._note_repetition()
        upkeep = None if table is None else RecordUpkeep(self._target.ledger, table)
        decisions = self._decide(stage, table, upkeep)
        try:
            for chunk, last in _split_into_batches(decisions, self.request.batch_files):
                snapshot = self._load_batch(stage, snapshot, chunk, last=last)
        except BaseException:
            # Records that were met must not end because every run fails; the failure is told.
            with suppress(CalqueError):
                _write_upkeep(upkeep)
            raise
        _write_upkeep(upkeep)
        if table is not None:
            self._expire(table)

    def _load_batch(
        self, stage: Stage, snapshot: Snapshot | None, chunk: list[Decision], *, last: bool
    ) -> Snapshot | None:
        """Load these files, as often as others get in between; the table after it."""
        files = [one.file for one in chunk]
        format = self._choose_format(stage, snapshot, files)
        size = sum(file.identity.size for file in files)
        engine = self._engine_for(size)
        snapshot = self._prepare_table(stage, snapshot, engine, files, format)
        if snapshot is None:
            return None
        stage.leave_out(self.lake.place)  # the listing goes on while the table fills
        advance = self._advance(len(files), size)
        while chunk:
            # Up to this version every load is known to the ledger when the files are claimed.
            table = self._register(snapshot)
            files = [one.file for one in chunk]
            draft = self._target.draft
            batch = Batch(
                request=self.request,
                stage=stage,
                ledger=self._target.ledger,
                lake=self.lake,
                table=table,
                engine=engine,
                plan=self._plan(stage, files, self.lake.root, snapshot.target, format),
                archive=self._archive,
                advance=advance,
                publish=draft.publish if draft is not None else None,
            )
            start = self._start(table, snapshot, engine, format)
            self._label_uses += 1
            try:
                left = batch.run(start, snapshot, chunk, last=last)
            finally:
                self._report_batch(batch.result)
            snapshot = self.lake.open() if draft is None else self._open_first(table)
            if snapshot is None:
                return None  # no file of the batch could be loaded: there is still no table
            self._purge(table, stage)
            chunk = self._decide_again(stage, snapshot, left) if left else []
        return snapshot

    def _decide_again(
        self, stage: Stage, snapshot: Snapshot, left: Sequence[Decision]
    ) -> list[Decision]:
        """What is still to be loaded once it is known what others have loaded meanwhile."""
        table = self._register(snapshot)
        again = []
        comparison = Comparison(stage, self.request, self._target.ledger, table)
        for one in comparison.decide_again(left):
            if one.status is not None:
                self._report_skipped(one)
            elif one.changed and one.known is not None and self.request.on_changed == "error":
                raise _changed_error(one)
            else:
                again.append(one)
        return again

    def _open_first(self, table: TableRow) -> Snapshot | None:
        """The table that the first load made; None if it made none."""
        found = self._target.open_first(partition_by=self.request.partition_by)
        if found is not None:
            self.report.recovered += self._target.release_lost(table)
            if self.request.schema is None:
                seen = "1 file" if self._sampled == 1 else f"{self._sampled} files"
                self.report.notes.append(f"the table was made; its schema was inferred from {seen}")
        return found

    def _choose_format(
        self, stage: Stage, snapshot: Snapshot | None, files: Sequence[StagedFile]
    ) -> FormatOptions:
        """The format of the files; of delimited text it is told how it is read."""
        reading = choose_dialect(
            self.request,
            choose_format(self.request, files),
            files,
            stage.options,
            {} if snapshot is None else snapshot.properties,
            () if snapshot is None else snapshot.target.schema.names,
        )
        if reading.note is not None and reading.note not in self.report.notes:
            self.report.notes.append(reading.note)
        return reading.format

    def _prepare_table(
        self,
        stage: Stage,
        snapshot: Snapshot | None,
        engine: Engine,
        files: Sequence[StagedFile],
        format: FormatOptions,
    ) -> Snapshot | None:
        """The table, drafted or grown if need be; None if no file stood still to be looked at."""
        if snapshot is None:
            return self._draft_table(stage, engine, files, format)
        if self.request.evolve:
            match = choose_match(self.request, format)
            return evolve_table(
                self.request, engine, self.lake, snapshot, files, format, match, stage.options
            )
        return snapshot

    def _draft_table(
        self, stage: Stage, engine: Engine, files: Sequence[StagedFile], format: FormatOptions
    ) -> Snapshot | None:
        try:
            schema = schema_for_new_table(self.request, engine, files, format, stage.options)
        except (NotFound, ConditionNotMatch) as error:
            # Another loader may have made the table, loaded these files and purged them.
            found = self._open_table()
            if found is None:
                self._report_moved(files, error)
            return found
        draft = self.lake.draft(schema, self.request.partition_by, as_property(format))
        self._target.draft = draft
        self._sampled = min(len(files), SAMPLE)
        return draft.snapshot

    def _start(
        self, table: TableRow, snapshot: Snapshot, engine: Engine, format: FormatOptions
    ) -> LoadStart:
        asked = self.request
        if asked.said is not None:  # in a statement all of the format is said
            asked = replace(asked, format=format, said=None)
        return LoadStart(
            load_id=new_load_id(
                self._target.ledger,
                table,
                Sidecars(self.lake.place),
                self.request.label,
                self._label_uses,
            ),
            owner=self._owner,
            lease_seconds=self.request.lease_seconds,
            base_version=snapshot.version,
            label=self.request.label,
            label_uses=self._label_uses,
            who=_user_name(),
            statement=render(asked),
            engine=engine.name,
            purge=self.request.purge or self._archive is not None,
            force=self.request.force,
        )

    def _engine_for(self, size: int) -> Engine:
        if self._engine is None:
            self._engine = self._choose_engine(size, self.request.transformation is not None)
            self.report.engine = self._engine.name
        return self._engine

    def _advance(self, files: int, size: int) -> OnAdvance | None:
        """What an engine is to tell; of files that are read twice it may tell too much."""
        tell = self._progress
        if tell is None:
            return None
        return lambda done: tell(
            LoadProgress(min(done.files, files), files, done.rows, min(done.bytes, size), size)
        )

    def _note_repetition(self) -> None:
        """FORCE with a limit takes the first files each time, unless they go away."""
        asked = self.request
        limited = asked.max_files is not None or asked.size_limit is not None
        if asked.force and limited and not asked.purge and asked.archive is None:
            self.report.notes.append(
                "FORCE begins at the first file each time: with a limit it loads the same files "
                "again; PURGE or ARCHIVE lets the next ones come"
            )

    def _report_rows(self, rows: Iterable[FileResult]) -> None:
        for row in rows:
            self.report.files.add(row)

    def _report_batch(self, result: BatchResult) -> None:
        self._report_rows(result.rows)
        if result.load_id is not None:
            self.report.load_ids.append(result.load_id)
        if result.table_version is not None:
            self.report.table_version = result.table_version

    def _report_replay(self, done: Sequence[LoadRow]) -> None:
        """A label that was loaded whole: its report of then."""
        for one in done:
            self.report.load_ids.append(one.load_id)
            self._report_rows(results_of(self._target.ledger, one.load_id))
        self.report.table_version = done[0].table_version
        self.report.replayed = True

    def _report_skipped(self, one: Decision) -> None:
        if one.status is Status.FAILED and self.request.aborts:
            raise DataError(f"{one.file.location}: {one.message}")
        message = one.message
        if message is None and one.known is not None:
            message = f"loaded before, by load {one.known.load_id}"
        status = (one.status or Status.FAILED)._value_
        file = one.file
        self.report.files.skip(file.location, file.name, status, file.identity.size, message)

    def _report_moved(self, files: Sequence[StagedFile], error: CalqueError) -> None:
        """Files that all changed or vanished under our eyes: the next load sees them again."""
        message = f"changed while its schema was looked for: {error.message}"
        self._report_rows(
            FileResult(
                file.location,
                file.name,
                Status.CHANGED,
                bytes=file.identity.size,
                message=message,
            )
            for file in files
        )


def _write_upkeep(upkeep: RecordUpkeep | None) -> None:
    if upkeep is not None:
        upkeep.write()


def _abort_error(error: DataError, report: Report) -> LoadAborted:
    """The error a run ends with, with its report."""
    aborted = LoadAborted(
        error.message, hint=error.hint or "Nothing was loaded. ON_ERROR says what else may happen."
    )
    aborted.report = report
    return aborted


def _changed_error(one: Decision) -> DataError:
    assert one.known is not None, "what changed was known"
    return DataError(
        f"{one.file.location} changed since load {one.known.load_id}",
        hint="Nothing was loaded. Choose on_changed=reload, replace or skip.",
    )


def _split_into_batches(
    decisions: Iterator[Decision], most: int
) -> Iterator[tuple[list[Decision], bool]]:
    """Batches of at most ``most`` files; True with the last one."""
    batch: list[Decision] = []
    for one in decisions:
        if len(batch) >= most:
            yield batch, False
            batch = []
        batch.append(one)
    if batch:
        yield batch, True


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
