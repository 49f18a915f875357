"""A case of an option: what is staged, how it is said in SQL and in Python, what is seen."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyarrow import orc

from calque.config import LedgerSettings, Secret, Settings
from calque.errors import CalqueError, LoadAborted
from calque.loader.api import load, sql
from calque.loader.commit.tables.iceberg_catalog import open_embedded_catalog
from calque.loader.report import Report

AB = pa.schema([("a", pa.string()), ("b", pa.int64())])
DAY = pa.schema([("d", pa.date32())])
CLOCK = pa.schema([("c", pa.time64("us"))])
MOMENT = pa.schema([("t", pa.timestamp("us"))])
ZONED = pa.schema([("t", pa.timestamp("us", "UTC"))])
NEW_YEAR = datetime(2026, 12, 31, 23, 0, tzinfo=UTC)
REFUSED = "LoadAborted"


@dataclass
class World:
    """A stage, a table and a ledger of one run."""

    folder: Path
    kind: str = "delta"

    @property
    def stage(self) -> Path:
        return self.folder / "in"

    @property
    def table(self) -> Path:
        return self.folder / "t"

    @property
    def into(self) -> str:
        """The table as a statement names it."""
        return str(self.table) if self.kind == "delta" else f"iceberg:{self.folder}/lake/s.t"

    @property
    def settings(self) -> Settings:
        return Settings(ledger=LedgerSettings(url=Secret(str(self.folder / "ledger.db"))))


@dataclass
class Seen:
    """What is there after a statement."""

    world: World
    report: Report | None
    error: str | None

    @property
    def rows(self) -> Any:
        """Every row of the table; the error's name where there was one."""
        if self.error is not None:
            return self.error
        found = self._scan().to_pylist()
        return sorted((tuple(row.values()) for row in found), key=repr)

    def _scan(self) -> pa.Table:
        if self.world.kind == "delta":
            return DeltaTable(str(self.world.table)).to_pyarrow_table()
        return open_embedded_catalog(self.world.folder / "lake").load_table("s.t").scan().to_arrow()

    @property
    def columns(self) -> list[str]:
        return [field.name for field in DeltaTable(str(self.world.table)).schema().fields]

    @property
    def statuses(self) -> dict[str, str]:
        return {} if self.report is None else {r.name: str(r.status) for r in self.report.files}

    @property
    def staged(self) -> list[str]:
        return sorted(path.name for path in self.world.stage.iterdir())


def rows(seen: Seen) -> Any:
    return seen.rows


def numbers(seen: Seen) -> Any:
    """A column of floats as text, since NaN equals nothing."""
    return seen.rows if seen.error is not None else sorted(repr(row[0]) for row in seen.rows)


@dataclass(frozen=True)
class Case:
    """One option (or several spellings of it), and what shows that it works."""

    options: str
    """Spellings, separated by blanks."""
    value: str
    """As a statement has it."""
    keywords: Mapping[str, Any]
    """As ``calque.load`` has it; for an option of a format, its value."""
    expected: Any
    staged: Mapping[str, bytes | str] = field(default_factory=lambda: {"f.csv": "a,b\nx,1\n"})
    table: pa.Schema | None = AB
    see: Callable[[Seen], Any] = rows
    before: Callable[[World], None] | None = None
    kind: str | None = None
    """The format that the option belongs to; None: an option of COPY INTO."""
    beside: str = ""
    """What else the format is told."""
    lake: str = "delta"

    def __str__(self) -> str:
        return f"{self.kind or 'COPY'}-{self.options.split()[0]}"


def csv(
    options: str, value: str, given: Any, text: str | bytes, expected: Any, **more: Any
) -> Case:
    return Case(options, value, {"": given}, expected, {"f.csv": text}, kind="CSV", **more)


def json(options: str, value: str, given: Any, text: str, expected: Any, **more: Any) -> Case:
    return Case(options, value, {"": given}, expected, {"f.json": text}, kind="JSON", **more)


def xml(options: str, value: str, given: Any, text: str, expected: Any, **more: Any) -> Case:
    return Case(options, value, {"": given}, expected, {"f.xml": text}, kind="XML", **more)


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def as_orc(table: pa.Table) -> bytes:
    out = io.BytesIO()
    orc.write_table(table, out)
    return out.getvalue()


def avro(table: pa.Table) -> bytes:
    kinds: dict[str, Any] = {
        "string": "string",
        "timestamp[us]": {"type": "long", "logicalType": "local-timestamp-micros"},
    }
    fields = [{"name": f.name, "type": kinds[str(f.type)]} for f in table.schema]
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, table.to_pylist())
    return out.getvalue()


def world_of(folder: Path, case: Case) -> World:
    world = World(folder, case.lake)
    world.stage.mkdir(parents=True)
    for name, body in case.staged.items():
        (world.stage / name).write_bytes(body.encode() if isinstance(body, str) else body)
    if case.table is not None and case.lake == "iceberg":
        catalog = open_embedded_catalog(folder / "lake")
        catalog.create_namespace("s")
        catalog.create_table("s.t", case.table, properties={"commit.retry.num-retries": "0"})
    elif case.table is not None:
        DeltaTable.create(str(world.table), pa.schema(case.table))
    if case.before is not None:
        case.before(world)
    return world


def seen_after(world: World, run: Callable[[], Report]) -> Seen:
    try:
        return Seen(world, run(), None)
    except LoadAborted as error:
        return Seen(world, error.report, type(error).__name__)
    except CalqueError as error:
        return Seen(world, None, type(error).__name__)


def by_statement(world: World, case: Case, option: str | None) -> Seen:
    """Run the case in SQL, with the option or without."""
    text = statement(world, case, option)
    return seen_after(world, lambda: sql(text, settings=world.settings))


def statement(world: World, case: Case, option: str | None) -> str:
    """The case in SQL, with one of the option's spellings or without."""
    clause = f"{option} = {case.value}".replace("{folder}", str(world.folder)) if option else ""
    if case.kind is not None:
        clause = f"FILE_FORMAT = (TYPE = {case.kind} {case.beside} {clause})"
    return f"COPY INTO '{world.into}' FROM '{world.stage}/' {clause}"


def by_keywords(world: World, case: Case) -> Seen:
    """Run the case with ``calque.load``."""
    if case.kind is None:
        told = {
            name: value.format(folder=world.folder) if isinstance(value, str) else value
            for name, value in case.keywords.items()
        }
    else:
        told = {"format": case.kind, "format_options": _pairs(case)}
    return seen_after(
        world,
        lambda: load(f"{world.stage}/", world.into, settings=world.settings, **told),
    )


def _pairs(case: Case) -> dict[str, Any]:
    pairs = {case.options.split()[0]: case.keywords[""]}
    if case.beside:
        name, _, value = case.beside.partition(" = ")
        pairs[name] = value.strip("'")
    return pairs
