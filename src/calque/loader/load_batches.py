"""Batch after batch of a run into its table, which the first one may have to make."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from calque.config import Settings
from calque.errors import ConditionNotMatch, NotFound
from calque.ledger import TableRow
from calque.ledger.claim import LoadStart
from calque.loader.after.purge import purge_sources
from calque.loader.batch import Batch
from calque.loader.commit.sidecars import Sidecars
from calque.loader.commit.tables import Snapshot
from calque.loader.commit.target import Target
from calque.loader.fill_report import ReportFiller
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.load_progress import LoadProgress, OnProgress
from calque.loader.model.plan import Engine, OnAdvance
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.compare import Comparison, Decision, changed_error
from calque.loader.plan.dialect import as_property
from calque.loader.plan.evolve import SAMPLE, evolve_table, schema_for_new_table
from calque.loader.plan.label import new_load_id
from calque.loader.plan.make_plan import choose_match, make_plan
from calque.loader.plan.stage import Stage
from calque.loader.request.render import render
from calque.loader.request.request import LoadRequest


@dataclass(slots=True, kw_only=True)
class BatchLoader:
    """What the batches of one run have in common."""

    request: LoadRequest
    settings: Settings
    stage: Stage
    target: Target
    filler: ReportFiller
    owner: str
    label_uses: int = 0
    archive: str | None = None
    progress: OnProgress | None = None
    _sampled: int = field(default=0, init=False)

    def load(
        self,
        snapshot: Snapshot | None,
        chunk: list[Decision],
        format: FormatOptions,
        engine: Engine,
        *,
        last: bool,
    ) -> Snapshot | None:
        """Load these files, as often as others get in between; the table after it, if there is one.

        Every turn has its plan before its claim: what others loaded meanwhile is in no plan.
        """
        files = [one.file for one in chunk]
        snapshot = self._prepare_table(snapshot, engine, files, format)
        if snapshot is None:
            return None
        self.stage.leave_out(self.target.lake.place)  # the listing goes on while the table fills
        advance = self._advance(files)
        while chunk:
            # Up to this version every load is known to the ledger when the files are claimed.
            table = self.target.register(snapshot)
            draft = self.target.draft
            batch = self._batch(table, snapshot, chunk, format, engine, advance)
            start = self._start(table, snapshot, engine, format)
            self.label_uses += 1
            try:
                left = batch.run(start, snapshot, chunk, last=last)
            finally:
                self.filler.add_batch(batch.result)
            snapshot = self.target.lake.open() if draft is None else self._open_first(table)
            if snapshot is None:
                return None  # no file of the batch could be loaded: there is still no table
            self.purge(table)
            chunk = self._decide_again(snapshot, left) if left else []
        return snapshot

    def tell_phase(self, phase: str) -> None:
        if self.progress is not None:
            self.progress(LoadProgress(phase=phase))

    def purge(self, table: TableRow) -> None:
        """Remove the sources that finished loads have queued, of this run or of dead ones."""
        done = purge_sources(self.target.ledger, table, self.stage, self.settings)
        self.filler.add_purged(done)

    def _batch(
        self,
        table: TableRow,
        snapshot: Snapshot,
        chunk: Sequence[Decision],
        format: FormatOptions,
        engine: Engine,
        advance: OnAdvance | None,
    ) -> Batch:
        lake, draft = self.target.lake, self.target.draft
        files = [one.file for one in chunk]
        plan = make_plan(self.request, self.stage, lake, files, snapshot.target, format)
        return Batch(
            request=self.request,
            stage=self.stage,
            ledger=self.target.ledger,
            lake=lake,
            table=table,
            engine=engine,
            plan=plan,
            archive=self.archive,
            advance=advance,
            tell_phase=self.tell_phase,
            publish=draft.publish if draft is not None else None,
        )

    def _decide_again(self, snapshot: Snapshot, left: Sequence[Decision]) -> list[Decision]:
        """What is still to be loaded once it is known what others have loaded meanwhile."""
        table = self.target.register(snapshot)
        again = []
        comparison = Comparison(
            self.stage, self.request, self.target.ledger, table, self.target.read_data_file
        )
        for one in comparison.decide_again(left):
            if one.status is not None:
                self.filler.add_skipped(one)
            elif one.changed and self.request.on_changed == "error":
                raise changed_error(one)
            else:
                again.append(one)
        return again

    def _open_first(self, table: TableRow) -> Snapshot | None:
        """The table that the first load made; None if it made none."""
        found = self.target.open_first(partition_by=self.request.partition_by)
        if found is not None:
            self.filler.report.recovered += self.target.release_lost(table)
            self.filler.note_new_table(self._sampled)
        return found

    def _prepare_table(
        self,
        snapshot: Snapshot | None,
        engine: Engine,
        files: Sequence[StagedFile],
        format: FormatOptions,
    ) -> Snapshot | None:
        """The table, drafted or grown if need be; None if no file stood still to be looked at."""
        if snapshot is None:
            return self._draft_table(engine, files, format)
        if not self.request.evolve:
            return snapshot
        match = choose_match(self.request, format)
        lake, options = self.target.lake, self.stage.options
        return evolve_table(self.request, engine, lake, snapshot, files, format, match, options)

    def _draft_table(
        self, engine: Engine, files: Sequence[StagedFile], format: FormatOptions
    ) -> Snapshot | None:
        asked = self.request
        if asked.schema is None:
            self.tell_phase("finding the columns")
        try:
            schema = schema_for_new_table(
                asked, engine, files, format, self.stage.options, self.target.lake
            )
        except (NotFound, ConditionNotMatch) as error:
            # Another loader may have made the table, loaded these files and purged them.
            found = self.target.open(may_be_made=asked.create, partition_by=asked.partition_by)
            if found is None:
                self.filler.add_moved(files, error)
            return found
        draft = self.target.lake.draft(schema, asked.partition_by, as_property(format))
        self.target.draft = draft
        self._sampled = min(len(files), SAMPLE)
        return draft.snapshot

    def _start(
        self, table: TableRow, snapshot: Snapshot, engine: Engine, format: FormatOptions
    ) -> LoadStart:
        asked, ledger = self.request, self.target.ledger
        if asked.said is not None:  # in a statement all of the format is said
            asked = replace(asked, format=format, said=None)
        sidecars = Sidecars(self.target.lake.place)
        return LoadStart(
            load_id=new_load_id(ledger, table, sidecars, asked.label, self.label_uses),
            owner=self.owner,
            lease_seconds=asked.lease_seconds,
            base_version=snapshot.version,
            label=asked.label,
            label_uses=self.label_uses,
            who=_user_name(),
            statement=render(asked),
            engine=engine.name,
            purge=asked.purge or self.archive is not None,
            force=asked.force,
        )

    def _advance(self, files: Sequence[StagedFile]) -> OnAdvance | None:
        """What an engine is to tell; of files that are read twice it may tell too much."""
        tell = self.progress
        if tell is None:
            return None
        count, size = len(files), sum(file.identity.size for file in files)
        return lambda done: tell(
            LoadProgress(min(done.files, count), count, done.rows, min(done.bytes, size), size)
        )


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
