"""The flow of a statement: list, compare, plan, run, commit, record, report. In that order."""

from __future__ import annotations

import getpass
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from calque import faults
from calque.config import Settings
from calque.errors import CalqueError, ConditionNotMatch, DataError, NotFound, StatementInvalid
from calque.ledger import Ledger, TableRow
from calque.ledger.claim import LoadStart
from calque.ledger.expire import OldLoad, expire_some
from calque.ledger.lease import this_process
from calque.ledger.manifest import FileResult
from calque.ledger.tables import find_table, note_restore, register_table, void_records
from calque.loader.after.archive import checked_archive
from calque.loader.after.purge import purge_sources
from calque.loader.batch import Batch, abort_of
from calque.loader.commit.our_commits import catch_up
from calque.loader.commit.protocol import TableGone, recover, release_lost
from calque.loader.commit.rebuild import ledger_to_look, rebuild
from calque.loader.commit.sidecars import Sidecars
from calque.loader.commit.tables import Draft, Lake, Mark, Snapshot, open_table
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.outcome import Status
from calque.loader.model.plan import Engine, OnAdvance
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.compare import Comparison, Decision
from calque.loader.plan.dialect import as_property, choose_dialect
from calque.loader.plan.evolve import SAMPLE, evolve_table, schema_for_new_table
from calque.loader.plan.failed_files import FailedFiles
from calque.loader.plan.label import done_by_label, new_load_id, replay, uses_of_label
from calque.loader.plan.make_plan import choose_format, choose_match
from calque.loader.plan.preview import preview
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


class Statement:
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
        self.lake: Lake = open_table(request.into, settings)
        self._draft: Draft | None = None
        self._sampled = 0
        self._settings = settings
        self._choose_engine = engine
        self._engine: Engine | None = None
        self._progress = progress
        self._failed = failed
        self._archive: str | None = None
        self._labelled = 0
        self._adopted = -1
        self._others = 0
        self.report = self._new_report()
        self._owner = f"{this_process()}#{secrets.token_hex(4)}"

    def _new_report(self) -> Report:
        asked = self.request
        return Report(
            self.lake.display,
            forced=asked.force,
            dry_run=asked.dry_run,
            only_failed=asked.return_failed_only,
        )

    def run(self) -> Report:
        """Do it. Raises LoadAborted (with the report) when the error policy gives it up."""
        begun = time.monotonic()
        try:
            while not self._run_unless_made():
                # Another loader made the table meanwhile: what it loaded counts.
                self.lake, self._draft = open_table(self.request.into, self._settings), None
                self._adopted, self._others = -1, 0
                self.report = self._new_report()
        except DataError as error:
            self.report.seconds = time.monotonic() - begun
            raise abort_of(error, self.report) from error
        self.report.seconds = time.monotonic() - begun
        return self.report

    def _run_unless_made(self) -> bool:
        """Run; False where a table that was to be made is there by now, and not by us.

        Whatever failed then may be the work of the other, which may have purged what it loaded.
        """
        try:
            self._run()
        except CalqueError:
            if self._draft is None or not self._is_made_by_others(self._draft):
                raise
            return False
        return self._draft is None or not self._is_made_by_others(self._draft)

    def _is_made_by_others(self, draft: Draft) -> bool:
        try:
            return self.lake.open().table_id != draft.snapshot.table_id
        except NotFound:
            return False

    def _run(self) -> None:
        snapshot = self._find()
        if snapshot is None or not self._look_only:
            self._run_on(snapshot)
            return
        with ledger_to_look(self.ledger, self.lake, snapshot) as self.ledger:
            self._run_on(snapshot)

    def _run_on(self, snapshot: Snapshot | None) -> None:
        stage = self._stage(snapshot)
        if self.request.archive is not None:
            root = self.lake.root if self._has_place(snapshot) else None
            self._archive = checked_archive(self.request.archive, self._settings, stage, root)
        table = self._table(snapshot) if snapshot is not None else None
        if table is not None and not self._look_only:
            self._put_in_order(table, stage)
        self._labelled = uses_of_label(self.ledger, table, self.request)
        if table is not None and replay(self.ledger, table, self.request, self.report):
            return
        decisions = self._decisions(stage, table)
        if self.request.on_changed == "error":
            self._refuse_changed(stage, table)
        if self._look_only:
            files = [one.file for one in decisions]
            if files:
                format = self._read_as(stage, snapshot, files)
                preview(
                    self.request,
                    stage,
                    self.lake,
                    snapshot,
                    files,
                    format,
                    self._engine_for,
                    self.report,
                )
        else:
            self._load(stage, snapshot, table, decisions)
            if table is not None:
                self._expire(table)
        self.report.ignored = stage.ignored
        if self._others:
            self.report.notes.append(
                f"{self._others} loads of other ledgers were taken in from the table's log"
            )
        if not self.report.matched:
            stage.must_be_there()

    @property
    def _look_only(self) -> bool:
        return self.request.dry_run or self.request.validation is not None

    def _find(self) -> Snapshot | None:
        try:
            found = self.lake.open()
        except NotFound:
            if not self.request.create:
                raise
            return None
        self._check_partitions(found)
        return found

    def _check_partitions(self, snapshot: Snapshot) -> None:
        """PARTITION_BY makes a table; it does not change one."""
        asked, have = self.request.partition_by, snapshot.target.partition_columns
        if asked and asked != have:
            raise StatementInvalid(
                f"{self.lake.display} is partitioned by {', '.join(have) or 'nothing'}, "
                f"not by {', '.join(asked)}",
                hint="Leave PARTITION_BY out, or load into a new table.",
            )

    def _stage(self, snapshot: Snapshot | None) -> Stage:
        stage = Stage(
            self.request.stage,
            self._settings,
            files=self.request.files,
            pattern=self.request.pattern,
        )
        if self._has_place(snapshot):
            stage.leave_out(self.lake.place)
        return stage

    def _has_place(self, snapshot: Snapshot | None) -> bool:
        """Whether it is known where the table lies: a catalog says so once it is made."""
        return snapshot is not None or self.lake.kind == "delta"

    def _table(self, snapshot: Snapshot) -> TableRow | None:
        key = self.lake.key(snapshot)
        if self._look_only:
            return find_table(self.ledger, key)
        table = register_table(self.ledger, key)
        if self._draft is not None and self._draft.snapshot is snapshot:
            void_records(self.ledger, table, [], snapshot.version)  # there is nothing to compare
            return register_table(self.ledger, key)
        ranges = [] if table.is_unchecked else snapshot.restored(table.checked_version)
        if ranges and note_restore(self.ledger, table, ranges):
            self.report.notes.append(
                "the table was restored to an earlier version: files that it lost count as new"
            )
            table = register_table(self.ledger, key)
        if table.was_restored or (table.is_unchecked and self._adopted < 0):
            faults.point("rebuild.before")
            adopted = rebuild(self.ledger, self.lake, table, snapshot)
            if adopted:
                self.report.notes.append(
                    f"the ledger did not know this table; {len(adopted)} earlier loads were "
                    "taken over from the table itself"
                )
        else:
            # The table is the arbiter: what other ledgers loaded counts before we compare.
            since = max(table.checked_version, self._adopted)
            self._others += len(catch_up(self.ledger, self.lake, table, snapshot, since))
            void_records(self.ledger, table, [], snapshot.version)
        self._adopted = snapshot.version
        return register_table(self.ledger, key)

    def _put_in_order(self, table: TableRow, stage: Stage) -> None:
        """What dead loads left: finish or abort them, remove what they had queued."""
        done = recover(self.ledger, self.lake, table, self._owner, self.request.lease_seconds)
        self.report.recovered = [f"{one.load_id}: {one.mark}" for one in done]
        self._release_lost(table)
        self._purge(table, stage)

    def _release_lost(self, table: TableRow) -> None:
        lost = release_lost(self.ledger, self.lake, table)
        self.report.recovered += [f"{load_id}: {Mark.ABORTED}" for load_id in lost]

    def _purge(self, table: TableRow, stage: Stage) -> None:
        done = purge_sources(self.ledger, table, stage, self._settings)
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
            expire_some(self.ledger, table, release)

    def _decisions(self, stage: Stage, table: TableRow | None) -> Iterator[Decision]:
        """Files to be loaded, within the limits; the others become result rows on the way."""
        done = done_by_label(self.ledger, table, self.request)
        count = size = 0
        for one in Comparison(stage, self.request, self.ledger, table, look_only=self._look_only):
            if one.status is None and one.file.location in done:
                one = replace(one, status=Status.SKIPPED_LOADED, message="loaded by this label")
            self.report.matched += 1
            if one.status is not None:
                self._skip(one)
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

    def _skip(self, one: Decision) -> None:
        if one.status is Status.FAILED and self.request.aborts:
            raise DataError(f"{one.file.location}: {one.message}")
        message = one.message
        if message is None and one.known is not None:
            message = f"loaded before, by load {one.known.load_id}"
        status = (one.status or Status.FAILED)._value_
        file = one.file
        self.report.files.skip(file.location, file.name, status, file.identity.size, message)

    def _refuse_changed(self, stage: Stage, table: TableRow | None) -> None:
        for one in Comparison(stage, self.request, self.ledger, table, look_only=True):
            if one.changed and one.known is not None:
                raise _changed_since(one)

    def _load(
        self,
        stage: Stage,
        snapshot: Snapshot | None,
        table: TableRow | None,
        decisions: Iterator[Decision],
    ) -> None:
        self._note_repetition()
        for chunk, last in _batches(decisions, self.request.batch_files):
            files = [one.file for one in chunk]
            format = self._read_as(stage, snapshot, files)
            size = sum(file.identity.size for file in files)
            engine = self._engine_for(size)
            snapshot = self._ready(stage, snapshot, engine, files, format)
            if snapshot is None:
                continue
            stage.leave_out(self.lake.place)  # the listing goes on while the table fills
            advance = self._advance(len(files), size)
            while chunk:
                # Up to this version every load is known to the ledger when the files are claimed.
                table = self._table(snapshot)
                assert table is not None, "a table that is there is registered"
                batch = Batch(
                    request=self.request,
                    stage=stage,
                    ledger=self.ledger,
                    lake=self.lake,
                    table=table,
                    engine=engine,
                    format=format,
                    report=self.report,
                    archive=self._archive,
                    advance=advance,
                    publish=self._draft.publish if self._draft is not None else None,
                )
                start = self._start(table, snapshot, engine, format)
                self._labelled += 1
                left = batch.run(start, snapshot, chunk, last=last)
                snapshot = self._after_first(table) if self._draft is not None else self.lake.open()
                if snapshot is None:
                    break  # no file of the batch could be loaded: there is still no table
                self._purge(table, stage)
                chunk = self._planned_anew(stage, snapshot, left) if left else []

    def _planned_anew(
        self, stage: Stage, snapshot: Snapshot, left: Sequence[Decision]
    ) -> list[Decision]:
        """What is still to be loaded once it is known what others have loaded meanwhile."""
        table = self._table(snapshot)
        again = []
        for one in Comparison(stage, self.request, self.ledger, table).again(left):
            if one.status is not None:
                self._skip(one)
            elif one.changed and one.known is not None and self.request.on_changed == "error":
                raise _changed_since(one)
            else:
                again.append(one)
        return again

    def _after_first(self, table: TableRow) -> Snapshot | None:
        """The table that the first load made; None if it made none."""
        draft, self._draft = self._draft, None
        found = self._find()
        if found is not None and draft is not None and found.table_id != draft.snapshot.table_id:
            self._draft = draft
            raise TableGone(f"table {self.lake.display} was made by another loader meanwhile")
        if found is not None:
            self._release_lost(table)
            self._note_table()
        return found

    def _note_table(self) -> None:
        if self.request.schema is None:
            seen = "1 file" if self._sampled == 1 else f"{self._sampled} files"
            self.report.notes.append(f"the table was made; its schema was inferred from {seen}")

    def _read_as(
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

    def _note_repetition(self) -> None:
        """FORCE with a limit takes the first files each time, unless they go away."""
        asked = self.request
        limited = asked.max_files is not None or asked.size_limit is not None
        if asked.force and limited and not asked.purge and asked.archive is None:
            self.report.notes.append(
                "FORCE begins at the first file each time: with a limit it loads the same files "
                "again; PURGE or ARCHIVE lets the next ones come"
            )

    def _ready(
        self,
        stage: Stage,
        snapshot: Snapshot | None,
        engine: Engine,
        files: Sequence[StagedFile],
        format: FormatOptions,
    ) -> Snapshot | None:
        """The table, drafted or grown if need be; None if no file stood still to be looked at."""
        if snapshot is None:
            return self._made(stage, engine, files, format)
        if self.request.evolve:
            match = choose_match(self.request, format)
            return evolve_table(
                self.request, engine, self.lake, snapshot, files, format, match, stage.options
            )
        return snapshot

    def _made(
        self,
        stage: Stage,
        engine: Engine,
        files: Sequence[StagedFile],
        format: FormatOptions,
    ) -> Snapshot | None:
        try:
            schema = schema_for_new_table(self.request, engine, files, format, stage.options)
        except (NotFound, ConditionNotMatch) as error:
            # Another loader may have made the table, loaded these files and purged them.
            found = self._find()
            if found is None:
                self._all_moved(files, error)
            return found
        self._draft = self.lake.draft(schema, self.request.partition_by, as_property(format))
        self._sampled = min(len(files), SAMPLE)
        return self._draft.snapshot

    def _all_moved(self, files: Sequence[StagedFile], error: CalqueError) -> None:
        """Files that all changed or vanished under our eyes: the next load sees them again."""
        for file in files:
            self.report.files.add(
                FileResult(
                    file.location,
                    file.name,
                    Status.CHANGED,
                    bytes=file.identity.size,
                    message=f"changed while its schema was looked for: {error.message}",
                )
            )

    def _start(
        self, table: TableRow, snapshot: Snapshot, engine: Engine, format: FormatOptions
    ) -> LoadStart:
        asked = self.request
        if asked.said is not None:  # in a statement all of the format is said
            asked = replace(asked, format=format, said=None)
        return LoadStart(
            load_id=new_load_id(
                self.ledger, table, Sidecars(self.lake.place), self.request.label, self._labelled
            ),
            owner=self._owner,
            lease_seconds=self.request.lease_seconds,
            base_version=snapshot.version,
            label=self.request.label,
            label_uses=self._labelled,
            who=_who(),
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


def _changed_since(one: Decision) -> DataError:
    assert one.known is not None, "what changed was known"
    return DataError(
        f"{one.file.location} changed since load {one.known.load_id}",
        hint="Nothing was loaded. Choose on_changed=reload, replace or skip.",
    )


def _batches(decisions: Iterator[Decision], most: int) -> Iterator[tuple[list[Decision], bool]]:
    """Batches of at most ``most`` files; True with the last one."""
    batch: list[Decision] = []
    for one in decisions:
        if len(batch) >= most:
            yield batch, False
            batch = []
        batch.append(one)
    if batch:
        yield batch, True


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
