"""A loader, in a process of its own where tests stop or kill it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from calque import faults
from calque.config import Settings
from calque.errors import CalqueError
from calque.ledger import open_ledger
from calque.ledger.database import DEFAULT_LIFE
from calque.loader.model.plan import Engine
from calque.loader.report import Report
from calque.loader.request.request import LoadRequest
from calque.loader.run.engines import choose_engine
from calque.loader.run_request import RequestRun
from tests.forks import FORKS

LEASE = 0.6
LOST = 255
"""What the fork server tells when it lost a code; then the report that was left tells."""


@dataclass(frozen=True)
class Place:
    """A folder with a stage, a table and a ledger."""

    folder: Path
    kind: str
    ledger: str

    @property
    def stage(self) -> Path:
        return self.folder / "stage"

    @property
    def table(self) -> str:
        lake = self.folder / "lake" / "t"
        return str(lake) if self.kind == "delta" else f"iceberg:{lake}"

    @property
    def source(self) -> str:
        """The stage as a statement names it."""
        return f"{self.stage}/"

    @property
    def settings(self) -> Settings:
        return Settings()

    def delta_table(self) -> DeltaTable:
        """The table as its own library opens it."""
        return DeltaTable(str(self.folder / "lake" / "t"))

    def iceberg_table(self) -> Table:
        """The table as its own library opens it."""
        lake = self.folder / "lake"
        uri, warehouse = f"sqlite:///{lake}/catalog.db", f"file://{lake}"
        return SqlCatalog("calque", uri=uri, warehouse=warehouse).load_table("default.t")

    def files(self) -> set[str]:
        """Every file under the table's folder."""
        lake = self.folder / "lake"
        return {str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file()}

    def statement(
        self,
        *,
        engine: Engine | None = None,
        clock: Callable[[], int] | None = None,
        life: int = DEFAULT_LIFE,
        **options: Any,
    ) -> RequestRun:
        """A statement over this place, ready to be run in this process."""
        request = LoadRequest(
            **{"stage": self.source, "into": self.table, "lease_seconds": LEASE, **options}
        )
        ledger = open_ledger(self.ledger, clock=clock, life=life)
        chosen = engine or choose_engine(spark="local")
        return RequestRun(request, self.settings, ledger, lambda _size, _sql: chosen)

    def load(self, **options: Any) -> Report:
        """Run a statement in this process."""
        return self.statement(**options).run()


def start(place: Place, name: str, fault: str = "", **options: Any) -> Any:
    """Start a loader; its report lies in ``<name>.json`` when it ends by itself."""
    process = FORKS.Process(target=_main, args=(place, name, fault, options), daemon=True)
    process.start()
    return process


def run(place: Place, name: str, fault: str = "", **options: Any) -> int:
    """Run a loader to its end; its exit code, negative if a signal ended it.

    One without a fault needs no process of its own: here a load takes a fifth of what the first one
    of a process takes. After a fault the process has to end, for others look whether it lives.
    """
    if fault:
        return ended(place, name, start(place, name, fault, **options))
    return _run_to_end(place, name, options)


def ended(place: Place, name: str, process: Any) -> int:
    """Wait for a loader; its exit code, negative if a signal ended it."""
    process.join(60)
    code = process.exitcode
    if code is None:
        process.kill()
        raise AssertionError(f"loader {name} did not end")
    if code == LOST:
        return 1 if "error" in report(place, name) else 0
    return int(code)


def report(place: Place, name: str) -> dict[str, Any]:
    """What a loader that ended by itself reported."""
    return dict(json.loads((place.folder / f"{name}.json").read_text()))


def _main(place: Place, name: str, fault: str, options: dict[str, Any]) -> None:
    faults.arm(fault)
    os._exit(_run_to_end(place, name, options))


def _run_to_end(place: Place, name: str, options: dict[str, Any]) -> int:
    try:
        told = place.statement(**options).run().to_json()
        code = 0
    except CalqueError as error:
        told = {"error": type(error).__name__, "message": str(error)}
        code = 1
    (place.folder / f"{name}.json").write_text(json.dumps(told, default=str))
    return code
