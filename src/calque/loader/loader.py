"""Statements over one ledger and one engine."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from calque.config import Settings, load_settings
from calque.errors import CalqueError
from calque.late_module import LateModule
from calque.ledger.configured import ledger_of
from calque.ledger.files import scan
from calque.ledger.tables import find_table
from calque.loader.commit.tables import open_table
from calque.loader.model.load_progress import OnProgress
from calque.loader.model.plan import Engine
from calque.loader.plan.stage import Stage
from calque.loader.request.request import LoadRequest
from calque.loader.run.engines import choose_engine
from calque.loader.run_request import RequestRun
from calque.spark.session import SparkOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from calque.loader.commit import truncate
    from calque.loader.plan.failed_files import FailedFiles
    from calque.loader.report import Report
else:
    truncate = LateModule("calque.loader.commit.truncate")


class Loader:
    """Runs statements over one ledger and one engine: open once, use often, close."""

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        spark: SparkSession | SparkOptions | str | None = None,
    ) -> None:
        self.settings = settings or load_settings()
        self.ledger = ledger_of(self.settings)
        self._spark = spark if spark is not None else self.settings.spark.master
        self._engines: dict[str, Engine] = {}

    def run(
        self,
        request: LoadRequest,
        progress: OnProgress | None = None,
        failed: FailedFiles | None = None,
    ) -> Report:
        """One statement, to its end; files that ``failed`` before are left alone."""
        statement = RequestRun(request, self.settings, self.ledger, self._engine, progress, failed)
        return statement.run()

    def truncate(self, table: str) -> Report:
        """Empty a table and forget what was loaded into it, in one commit."""
        return truncate.truncate_table(table, self.settings, self.ledger)

    def _engine(self, size: int, transforms: bool) -> Engine:
        told = self.settings.spark
        chosen = choose_engine(
            spark=self._spark,
            bytes=size,
            transforms=transforms,
            configured=SparkOptions(memory=told.memory, settings=told.settings),
        )
        return self._engines.setdefault(chosen.name, chosen)

    def knows_stage(self, request: LoadRequest) -> bool:
        """Whether files of this stage are in the table by the ledger: then it was there once."""
        try:
            lake = open_table(request.into, self.settings, must_exist=True)
            table = find_table(self.ledger, lake.key(lake.look()))
            prefix = Stage(request.stage, self.settings).prefix
        except CalqueError:
            return False
        return table is not None and next(scan(self.ledger, table, prefix), None) is not None

    def let_go_of_engines(self) -> None:
        """Close them; the next statement starts its own."""
        for engine in self._engines.values():
            engine.close()
        self._engines.clear()

    def close(self) -> None:
        self.let_go_of_engines()
        self.ledger.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
