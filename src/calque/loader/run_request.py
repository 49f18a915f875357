"""One run of a request: list, compare, plan, run, commit, record, report. In that order.

Comparing and planning write nothing, so a dry run takes the very same steps and stops there. A plan
is made before its files are claimed and nowhere else. What each step returns becomes the report in
``fill_report``.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from calque import tracing
from calque.config import Settings
from calque.errors import CalqueError, DataError
from calque.late_module import LateModule
from calque.ledger import Ledger, TableRow
from calque.ledger.expire import OldLoad, expire_some
from calque.ledger.lease import this_process
from calque.loader.after.archive import check_archive
from calque.loader.after.expire import forget_load
from calque.loader.after.purge import purge_sources
from calque.loader.after.upkeep import RecordUpkeep
from calque.loader.commit.rebuild import ledger_to_look
from calque.loader.commit.sidecars import Sidecars
from calque.loader.commit.tables import Lake, Snapshot, open_table
from calque.loader.commit.target import Target
from calque.loader.fill_report import ReportFiller
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.load_progress import LoadProgress, OnProgress
from calque.loader.model.outcome import Status
from calque.loader.model.plan import Engine, TargetSchema
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.compare import Comparison, Decision, changed_error
from calque.loader.plan.label import count_uses_of_label, find_loaded_by_label, find_replay
from calque.loader.plan.stage import Stage
from calque.loader.report import Report
from calque.loader.request.request import LoadRequest

if TYPE_CHECKING:
    from calque.loader import load_batches
    from calque.loader.plan import dialect, evolve, make_plan, preview
    from calque.loader.plan.failed_files import FailedFiles
else:
    # What reads, writes and knows Arrow: a run that finds nothing to load imports none of it.
    load_batches = LateModule("calque.loader.load_batches")
    dialect = LateModule("calque.loader.plan.dialect")
    evolve = LateModule("calque.loader.plan.evolve")
    make_plan = LateModule("calque.loader.plan.make_plan")
    preview = LateModule("calque.loader.plan.preview")

T = TypeVar("T")
EngineChoice = Callable[[int, bool], Engine]
"""Bytes to be read and whether rows are transformed → where to run."""


class RequestRun:
    """One run of a request: killed at any step and run again, each file counts once."""

    def __init__(
        self,
        request: LoadRequest,
        settings: Settings,
        ledger: Ledger,
        engine: EngineChoice,
        progress: OnProgress | None = None,
        failed: FailedFiles | None = None,
    ) -> None:
        self.request = request
        self.ledger = ledger
        self._settings = settings
        self._choose_engine = engine
        self._engine: Engine | None = None
        self._progress = progress
        self._failed = failed
        self._owner = f"{this_process()}#{secrets.token_hex(4)}"
        self._begin()

    def _begin(self) -> None:
        lake = open_table(self.request.into, self._settings)
        self._filler = ReportFiller(self.request, lake.display)
        self._target = Target(lake, self.ledger, self._filler.note)

    @property
    def lake(self) -> Lake:
        """The table that the request names."""
        return self._target.lake

    @property
    def report(self) -> Report:
        """What is known by now of what the run does."""
        return self._filler.report

    def run(self) -> Report:
        """Do it. Raises LoadAborted (with the report) when the error policy gives it up."""
        begun = time.monotonic()
        try:
            with tracing.span("load", table=self.lake.display):
                while not self._run_unless_made():
                    # Another loader made the table meanwhile: what it loaded counts.
                    self._begin()
        except DataError as error:
            self.report.seconds = time.monotonic() - begun
            raise self._filler.abort_error(error) from error
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
        self._tell_phase("opening the table")
        with tracing.span("load.open"):
            snapshot = self._target.open(
                may_be_made=self.request.create, partition_by=self.request.partition_by
            )
        if snapshot is None or not self._look_only:
            self._run_on(snapshot)
            return
        with ledger_to_look(self.ledger, self.lake, snapshot) as ledger:
            self._target = Target(self.lake, ledger, self._filler.note)
            self._run_on(snapshot)

    def _run_on(self, snapshot: Snapshot | None) -> None:
        stage = self._open_stage(snapshot)
        archive = self._check_archive(stage, snapshot)
        if self._look_only:
            self._look(stage, snapshot)
        else:
            self._load(stage, snapshot, archive)
        if self.report.replayed:
            return
        self.report.ignored = stage.ignored
        self._filler.note_taken_in(self._target.taken_in)
        if not self.report.matched:
            stage.must_be_there()

    @property
    def _look_only(self) -> bool:
        return self.request.dry_run or self.request.validation is not None

    def _open_stage(self, snapshot: Snapshot | None) -> Stage:
        asked = self.request
        stage = Stage(asked.stage, self._settings, files=asked.files, pattern=asked.pattern)
        if self._target.has_place(snapshot):
            stage.leave_out(self.lake.place)
        return stage

    def _check_archive(self, stage: Stage, snapshot: Snapshot | None) -> str | None:
        if self.request.archive is None:
            return None
        root = self.lake.root if self._target.has_place(snapshot) else None
        return check_archive(self.request.archive, self._settings, stage, root)

    def _replay(self, table: TableRow | None) -> bool:
        """Whether the label was loaded whole before: then its report is given again."""
        if table is None:
            return False
        done = find_replay(self._target.ledger, table, self.request)
        if done:
            self._filler.add_replay(self._target.ledger, done)
        return bool(done)

    def _tell_phase(self, phase: str) -> None:
        if self._progress is not None:
            self._progress(LoadProgress(phase=phase))

    def _look(self, stage: Stage, snapshot: Snapshot | None) -> None:
        """A dry run or a validation: everything of a load but the claiming and writing."""
        table = self._target.find(snapshot) if snapshot is not None else None
        if self._replay(table):
            return
        files = [one.file for one in self._decide(stage, table)]
        if not files:
            return
        format = self._choose_format(stage, snapshot, files)
        target = self._find_target(stage, snapshot, files, format)
        plan = make_plan.make_plan(
            self.request, stage, self.lake, files, target, format, is_made=snapshot is not None
        )
        asked = self.request.validation
        if asked is None:
            self._filler.add_preview(preview.preview(plan))
        else:
            engine = self._engine_for(plan.bytes)
            self._filler.add_preview(preview.validate(asked, engine, plan))

    def _find_target(
        self,
        stage: Stage,
        snapshot: Snapshot | None,
        files: Sequence[StagedFile],
        format: FormatOptions,
    ) -> TargetSchema:
        """The table's schema, or the one it would be made with."""
        if snapshot is not None:
            return snapshot.target
        engine = self._engine_for(0)
        schema = evolve.schema_for_new_table(
            self.request, engine, files, format, stage.options, self.lake
        )
        return TargetSchema(schema=schema, partition_columns=self.request.partition_by)

    def _load(self, stage: Stage, snapshot: Snapshot | None, archive: str | None) -> None:
        asked = self.request
        table = self._target.register(snapshot) if snapshot is not None else None
        if table is not None:
            # What dead loads left comes first: finish or abort them, remove what they had queued.
            self.report.recovered = self._target.recover(table, self._owner, asked.lease_seconds)
            done = purge_sources(self._target.ledger, table, stage, self._settings)
            self._filler.add_purged(done)
        uses = count_uses_of_label(self._target.ledger, table, asked)
        if self._replay(table):
            return
        self._filler.note_repetition()
        self._load_stage(stage, snapshot, table, archive, uses)
        if table is not None:
            self._expire(table)

    def _load_stage(
        self,
        stage: Stage,
        snapshot: Snapshot | None,
        table: TableRow | None,
        archive: str | None,
        label_uses: int,
    ) -> None:
        """Compare, batch by batch, and load; then see to the records that were met."""
        upkeep = None if table is None else RecordUpkeep(self._target.ledger, table)
        loader: load_batches.BatchLoader | None = None
        decisions = self._decide(stage, table, upkeep)
        try:
            batches = _split_into_batches(decisions, self.request.batch_files)
            for chunk, last in _trace_each(batches):
                loader = loader or self._make_loader(stage, archive, label_uses)
                files = [one.file for one in chunk]
                format = self._choose_format(stage, snapshot, files)
                engine = self._engine_for(sum(file.identity.size for file in files))
                snapshot = loader.load(snapshot, chunk, format, engine, last=last)
        except BaseException:
            # Records must not run out because every run fails; that failure is what is told.
            if upkeep is not None:
                with suppress(CalqueError):
                    upkeep.write()
            raise
        if upkeep is not None:
            upkeep.write()

    def _make_loader(
        self, stage: Stage, archive: str | None, label_uses: int
    ) -> load_batches.BatchLoader:
        return load_batches.BatchLoader(
            request=self.request,
            settings=self._settings,
            stage=stage,
            target=self._target,
            filler=self._filler,
            owner=self._owner,
            label_uses=label_uses,
            archive=archive,
            progress=self._progress,
        )

    def _expire(self, table: TableRow) -> None:
        """A few records whose time is over, with what their loads left: nobody needs a cron job."""
        sidecars = Sidecars(self.lake.place)

        def release(load: OldLoad) -> bool:
            if not load.adopted:
                forget_load(sidecars, load)
            return True

        # What could not go now goes the next time; the load itself is over and was right.
        with suppress(CalqueError):
            expire_some(self._target.ledger, table, release)

    def _decide(
        self, stage: Stage, table: TableRow | None, upkeep: RecordUpkeep | None = None
    ) -> Iterator[Decision]:
        """Files to be loaded, within the limits; the others become result rows on the way."""
        self._tell_phase("listing and comparing")
        if self.request.on_changed == "error":
            self._refuse_changed(stage, table)
        done = find_loaded_by_label(self._target.ledger, table, self.request)
        formats = None if self._failed is None else make_plan.OneFormat(self.request)
        count = size = 0
        report, add_skipped = self.report, self._filler.add_skipped
        for found in self._compare(stage, table):
            report.matched += 1
            if upkeep is not None:
                upkeep.note(found)
            one = self._consider(found, formats)
            if one is None:
                continue
            if one.status is None and one.file.location in done:
                one = one._replace(status=Status.SKIPPED_LOADED, message="loaded by this label")
            if one.status is not None:
                add_skipped(one)
                continue
            if self.request.max_files is not None and count >= self.request.max_files:
                return
            if self.request.size_limit is not None and size >= self.request.size_limit:
                return
            count += 1
            size += one.file.identity.size
            yield one

    def _compare(self, stage: Stage, table: TableRow | None) -> Comparison:
        target = self._target
        return Comparison(stage, self.request, target.ledger, table, target.read_data_file)

    def _consider(self, one: Decision, formats: make_plan.OneFormat | None) -> Decision | None:
        """Of a watch: not what failed before, and one format at a time."""
        if self._failed is None or formats is None or one.status not in (None, Status.FAILED):
            return one
        if not self._failed.take(one.file):
            return None
        if one.status is None and (why := formats.refuse(one.file)) is not None:
            return one._replace(status=Status.FAILED, message=why)
        return one if one.status is not None or formats.takes(one.file) else None

    def _refuse_changed(self, stage: Stage, table: TableRow | None) -> None:
        """ON_CHANGED = ERROR: the whole stage is looked at before the first file is loaded."""
        for one in self._compare(stage, table):
            if one.changed:
                raise changed_error(one)

    def _choose_format(
        self, stage: Stage, snapshot: Snapshot | None, files: Sequence[StagedFile]
    ) -> FormatOptions:
        """The format of the files; of delimited text it is told how it is read."""
        reading = dialect.choose_dialect(
            self.request,
            make_plan.choose_format(self.request, files),
            files,
            stage.options,
            {} if snapshot is None else snapshot.properties,
            self._known_columns(snapshot),
        )
        if reading.note is not None:
            self._filler.note(reading.note)
        return reading.format

    def _known_columns(self, snapshot: Snapshot | None) -> Sequence[str]:
        """Names that a header would repeat: of the table, or of the schema it is made with."""
        if snapshot is not None:
            return list(snapshot.target.schema.names)
        return [] if self.request.schema is None else list(self.request.schema.names)

    def _engine_for(self, size: int) -> Engine:
        """Chosen once, by the first bytes there are to read: no JVM starts without work for it."""
        if self._engine is None:
            self._engine = self._choose_engine(size, self.request.transformation is not None)
            if self._engine.name == "spark":
                self._tell_phase("starting Spark")
        self.report.engine = self._engine.name
        return self._engine


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


def _trace_each(batches: Iterator[T]) -> Iterator[T]:
    """The same, with a span for what it takes to list and compare each."""
    while True:
        with tracing.span("load.list"):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch
