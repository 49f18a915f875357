"""Every option does something: each case fails if its option is ignored.

A case is run three times: without the option, with it in a statement, with it in ``calque.load``.
What is seen with it must be as told, both ways, and must differ from what is seen without.
"""

from __future__ import annotations

import gzip
import inspect
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError
from pyarrow import orc
from sqlalchemy import delete, select, update

from calque.config import LedgerSettings, Secret, Settings
from calque.errors import CalqueError, LoadAborted, StatementInvalid
from calque.ledger import open_ledger
from calque.ledger.schema import files, loads, tables
from calque.loader.api import load, sql
from calque.loader.commit.tables.iceberg_catalog import open_embedded_catalog
from calque.loader.model.file_formats import CsvFormat
from calque.loader.report import Report
from calque.loader.request.option_values import REFUSED as REASONS
from calque.loader.request.options import COPY, DATABRICKS_COPY, FORMATS, NOTHING
from calque.loader.request.parse import parse

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


NAIVE = pa.table({"t": pa.array([datetime(2027, 1, 1)], pa.timestamp("us"))})
BIG = pa.table({"a": [os.urandom(64).hex() for _ in range(20_000)], "b": list(range(20_000))})


def columnar(kind: str, made: Callable[[pa.Table], bytes]) -> list[Case]:
    only_a = {"f": made(pa.table({"a": ["x"]}))}
    zoned = {"f": made(NAIVE)}
    return [
        Case("MISSING_FIELD_AS", "NULL", {"": "NULL"}, [("x", None)], only_a, kind=kind),
        Case(
            "TIME_ZONE",
            "'Europe/Paris'",
            {"": "Europe/Paris"},
            [(NEW_YEAR,)],
            zoned,
            ZONED,
            kind=kind,
        ),
    ]


def was_copied(seen: Seen) -> bool:
    """Whether a data file of the table is the staged file, byte by byte."""
    source = (seen.world.stage / "f").read_bytes()
    return any(path.read_bytes() == source for path in seen.world.table.glob("*.parquet"))


FORMAT_CASES = [
    Case(
        "COMPRESSION",
        "GZIP",
        {"": "gzip"},
        [("x", 1)],
        {"f.csv.zst": gzip.compress(b"x,1\n")},  # the name lies; the option is believed
        kind="CSV",
    ),
    csv("FIELD_DELIMITER SEP DELIMITER", "';'", ";", "x;1\n", [("x", 1)]),
    csv("RECORD_DELIMITER LINESEP", "'|'", "|", "x,1|y,2|", [("x", 1), ("y", 2)]),
    csv("FIELD_OPTIONALLY_ENCLOSED_BY QUOTE", "'%'", "%", "%x,y%,1\n", [("x,y", 1)]),
    csv("ESCAPE", r"'\\'", "\\", "x\\,y,1\n", [("x,y", 1)]),
    csv("ESCAPE_STYLE", "MYSQL", "mysql", "x\\ny,1\n", [("x\ny", 1)], beside="ESCAPE = '0x5C'"),
    csv("SKIP_HEADER SKIPROWS", "1", 1, "a,b\nx,1\n", [("x", 1)]),
    csv("PARSE_HEADER HEADER", "TRUE", True, "b,a\n1,x\n", [("x", 1)]),
    csv("NULL_IF NULL_DISPLAY NULLVALUE", "'NA'", "NA", "NA,1\n", [(None, 1)]),
    csv("QUOTED_NULLS", "TRUE", True, '"NA",1\n', [(None, 1)], beside="NULL_IF = 'NA'"),
    csv("EMPTY_FIELD_AS_NULL", "TRUE", True, ",1\n", [(None, 1)]),
    csv("EMPTY_FIELD_AS", "NULL", "NULL", ",1\n", [(None, 1)]),
    csv("TRIM_SPACE", "TRUE", True, " x ,1\n", [("x", 1)]),
    csv("COMMENT", "'#'", "#", "#y,2\nx,1\n", [("x", 1)]),
    csv("SKIP_BLANK_LINES", "FALSE", False, "x,1\n\ny,2\n", REFUSED),
    csv("ENCODING", "'latin-1'", "latin-1", b"\xe9,1\n", [("é", 1)]),
    csv("REPLACE_INVALID_CHARACTERS", "TRUE", True, b"\xff,1\n", [("\ufffd", 1)]),
    csv("ERROR_ON_COLUMN_COUNT_MISMATCH", "FALSE", False, "x,1,9\n", [("x", 1)]),
    csv(
        "DATE_FORMAT DATEFORMAT",
        "'DD/MM/YYYY'",
        "DD/MM/YYYY",
        "31/12/2026\n",
        [(date(2026, 12, 31),)],
        table=DAY,
    ),
    csv(
        "TIMESTAMP_FORMAT TIMESTAMPFORMAT",
        "'DD.MM.YYYY HH24:MI'",
        "%d.%m.%Y %H:%M",
        "31.12.2026 23:30\n",
        [(datetime(2026, 12, 31, 23, 30),)],
        table=MOMENT,
    ),
    csv(
        "TIME_ZONE",
        "'Europe/Paris'",
        "Europe/Paris",
        "2027-01-01 00:00:00\n",
        [(NEW_YEAR,)],
        table=ZONED,
    ),
    csv(
        "DECIMAL_POINT",
        "','",
        ",",
        "1,5\n",
        [(1.5,)],
        table=pa.schema([("n", pa.float64())]),
        beside="FIELD_DELIMITER = ';'",
    ),
    csv(
        "THOUSANDS_SEPARATOR",
        "'.'",
        ".",
        "1.500\n",
        [(1500,)],
        table=pa.schema([("n", pa.int64())]),
        beside="DECIMAL_POINT = ','",
    ),
    csv(
        "TIME_FORMAT",
        "'HH12:MI AM'",
        "%I:%M %p",
        "11:30 PM\n",
        [(time(23, 30),)],
        table=CLOCK,
        lake="iceberg",
    ),
    csv(
        "NAN_DISPLAY NANVALUE",
        "'-'",
        "-",
        "-\n1.5\n",
        ["1.5", "nan"],
        table=pa.schema([("n", pa.float64())]),
        see=numbers,
    ),
    csv(
        "BINARY_FORMAT",
        "HEX",
        "hex",
        "6162\n",
        [(b"ab",)],
        table=pa.schema([("v", pa.binary())]),
    ),
    csv(
        "TRUE_VALUES", "('yes')", ("yes",), "yes\n", [(True,)], table=pa.schema([("v", pa.bool_())])
    ),
    csv(
        "FALSE_VALUES", "('no')", ("no",), "no\n", [(False,)], table=pa.schema([("v", pa.bool_())])
    ),
    Case(
        "COMPRESSION",
        "GZIP",
        {"": "gzip"},
        [("x", 1)],
        {"f.json.zst": gzip.compress(b'{"a":"x","b":1}\n')},
        kind="JSON",
    ),
    json(
        "STRIP_OUTER_ARRAY MULTILINE",
        "TRUE",
        True,
        '[{"a":"x","b":1},\n{"a":"y","b":2}]',
        [("x", 1), ("y", 2)],
    ),
    json("NULL_IF", "('NA')", ("NA",), '{"a":"NA","b":1}\n', [(None, 1)]),
    json(
        "STRIP_NULL_VALUES",
        "TRUE",
        True,
        '{"a":{"x":null,"y":[null,{"z":null}]},"b":1}\n',
        [('{"y": [null, {}]}', 1)],
    ),
    json("MISSING_FIELD_AS", "ERROR", "error", '{"a":"x"}\n', REFUSED),
    json(
        "DATE_FORMAT DATEFORMAT",
        "'DD/MM/YYYY'",
        "DD/MM/YYYY",
        '{"d":"31/12/2026"}\n',
        [(date(2026, 12, 31),)],
        table=DAY,
    ),
    json(
        "TIMESTAMP_FORMAT TIMESTAMPFORMAT",
        "'%d.%m.%Y %H:%M'",
        "%d.%m.%Y %H:%M",
        '{"t":"31.12.2026 23:30"}\n',
        [(datetime(2026, 12, 31, 23, 30),)],
        table=MOMENT,
    ),
    json(
        "TIME_FORMAT",
        "'HH24.MI'",
        "HH24.MI",
        '{"c":"23.30"}\n',
        [(time(23, 30),)],
        table=CLOCK,
        lake="iceberg",
    ),
    json(
        "TIME_ZONE",
        "'Europe/Paris'",
        "Europe/Paris",
        '{"t":"2027-01-01 00:00:00"}\n',
        [(NEW_YEAR,)],
        table=ZONED,
    ),
    *columnar("PARQUET", parquet),
    *columnar("ORC", as_orc),
    *columnar("AVRO", avro),
    Case(
        "COPY_IF_FITS",
        "FALSE",
        {"": False},
        False,
        {"f": parquet(BIG)},
        kind="PARQUET",
        see=was_copied,
    ),
    Case(
        "COMPRESSION",
        "GZIP",
        {"": "gzip"},
        [("x", 1)],
        {"f.xml.zst": gzip.compress(b"<t><row><a>x</a><b>1</b></row></t>")},
        kind="XML",
    ),
    xml("ROW_TAG ROWTAG", "'r'", "r", "<t><r><a>x</a><b>1</b></r></t>", [("x", 1)]),
    xml(
        "ATTRIBUTE_PREFIX ATTRIBUTEPREFIX",
        "''",
        "",
        '<t><row a="x"><b>1</b></row></t>',
        [("x", 1)],
    ),
    xml(
        "DATE_FORMAT",
        "'DD/MM/YYYY'",
        "DD/MM/YYYY",
        "<t><row><d>31/12/2026</d></row></t>",
        [(date(2026, 12, 31),)],
        table=DAY,
    ),
    xml(
        "TIMESTAMP_FORMAT",
        "'%d.%m.%Y %H:%M'",
        "%d.%m.%Y %H:%M",
        "<t><row><t>31.12.2026 23:30</t></row></t>",
        [(datetime(2026, 12, 31, 23, 30),)],
        table=MOMENT,
    ),
    xml(
        "TIME_FORMAT",
        "'HH24.MI'",
        "HH24.MI",
        "<t><row><c>23.30</c></row></t>",
        [(time(23, 30),)],
        table=CLOCK,
        lake="iceberg",
    ),
    xml(
        "TIME_ZONE",
        "'Europe/Paris'",
        "Europe/Paris",
        "<t><row><t>2027-01-01 00:00:00</t></row></t>",
        [(NEW_YEAR,)],
        table=ZONED,
    ),
]

TWO = {"f.csv": "a,b\nx,1\n", "g.csv": "a,b\ny,2\n"}
BAD = {"f.csv": "a,b\nx,1\ny,no\n"}
WIDE = {"f.csv": "a,b,c,d\nx,1,2,3\n"}


def loaded(world: World) -> None:
    """The stage was loaded before."""
    load(f"{world.stage}/", str(world.table), settings=world.settings)


def changed(world: World) -> None:
    """The stage was loaded, and then its file got another content."""
    loaded(world)
    (world.stage / "f.csv").write_text("a,b\nz,26\n")


def forgotten(world: World) -> None:
    """The stage was loaded so long ago that nothing is known of its file any more."""
    loaded(world)
    os.utime(world.stage / "f.csv", (1, 1))
    with open_ledger(str(world.folder / "ledger.db")) as ledger, ledger.write() as connection:
        connection.execute(delete(files))
        connection.execute(update(tables).values(first_load_at=1))


def statuses(seen: Seen) -> Any:
    return seen.statuses


def staged(seen: Seen) -> Any:
    return seen.staged


def columns(seen: Seen) -> Any:
    return seen.columns


def archived(seen: Seen) -> list[str]:
    return sorted(path.name for path in (seen.world.folder / "old").glob("*"))


def sample(seen: Seen) -> Any:
    """Rows that were returned instead of loaded."""
    shown = None if seen.report is None else seen.report.sample
    return None if shown is None else shown.to_pylist(), seen.rows


def reported(seen: Seen) -> list[str]:
    return [] if seen.report is None else [row.name for row in seen.report.rows()]


def partitions(seen: Seen) -> list[str]:
    return DeltaTable(str(seen.world.table)).metadata().partition_columns


def load_ids(seen: Seen) -> list[str]:
    return [] if seen.report is None else seen.report.load_ids


def error(seen: Seen) -> str | None:
    return seen.error


def source_names(seen: Seen) -> list[str]:
    found = DeltaTable(str(seen.world.table)).to_pyarrow_table()
    texts = found.column("src").to_pylist() if "src" in found.column_names else []
    return [text.rpartition("/")[2] for text in texts]


COPY_CASES = [
    Case("FILES", "('g.csv')", {"files": ["g.csv"]}, [("y", 2)], TWO),
    Case("PATTERN", "'g.*'", {"pattern": "g.*"}, [("y", 2)], TWO),
    Case("FORCE", "TRUE", {"force": True}, [("x", 1), ("x", 1)], before=loaded),
    Case("PURGE", "TRUE", {"purge": True}, [], see=staged),
    Case("ARCHIVE", "'{folder}/old'", {"archive": "{folder}/old"}, ["f.csv"], see=archived),
    Case("ON_ERROR", "CONTINUE", {"on_error": "continue"}, [("x", 1)], BAD),
    Case("ON_CHANGED", "SKIP", {"on_changed": "skip"}, [("x", 1)], before=changed),
    Case("SIZE_LIMIT", "1", {"size_limit": 1}, [("x", 1)], TWO),
    Case("MAX_FILES", "1", {"max_files": 1}, [("x", 1)], TWO),
    Case(
        "VALIDATION_MODE",
        "RETURN_1_ROWS",
        {"validate": 1},
        ([{"a": "x", "b": 1}], []),
        TWO,
        see=sample,
    ),
    Case(
        "RETURN_FAILED_ONLY",
        "TRUE",
        {"return_failed_only": True},
        [],
        see=reported,
    ),
    Case(
        "MATCH_BY_COLUMN_NAME",
        "CASE_SENSITIVE",
        {"match_by": "case_sensitive"},
        [(None, 1)],
        {"f.csv": "A,b\nx,1\n"},
    ),
    Case(
        "LOAD_UNCERTAIN_FILES",
        "TRUE",
        {"load_uncertain_files": True},
        {"f.csv": "LOADED"},
        before=forgotten,
        see=statuses,
    ),
    Case(
        "INCLUDE_METADATA",
        "(src = METADATA$FILENAME)",
        {"metadata_columns": {"src": "METADATA$FILENAME"}},
        ["f.csv"],
        table=None,
        see=source_names,
    ),
    Case("CREATE_TABLE", "FALSE", {"create": False}, "NotFound", table=None, see=error),
    Case("PARTITION_BY", "('a')", {"partition_by": ["a"]}, ["a"], table=None, see=partitions),
    Case(
        "ENABLE_SCHEMA_EVOLUTION",
        "TRUE",
        {"evolve": True},
        ["a", "b", "c", "d"],
        WIDE,
        see=columns,
    ),
    Case(
        "EVOLVE_LIMIT",
        "1 ENABLE_SCHEMA_EVOLUTION = TRUE",
        {"evolve_limit": 1, "evolve": True},
        ("LoadAborted", ["a", "b"]),
        WIDE,
        see=lambda seen: (seen.error, seen.columns),
    ),
    Case(
        "RESCUE_COLUMN",
        "'a'",
        {"rescue_column": "a"},
        [('{"a": "x", "c": "2", "d": "3"}', 1)],
        WIDE,
    ),
    Case("LABEL", "'nightly'", {"label": "nightly"}, ["nightly"], see=load_ids),
    Case("MIN_AGE", "3600", {"min_age": 3600}, {"f.csv": "IN_PROGRESS"}, see=statuses),
    Case("DRY_RUN", "TRUE", {"dry_run": True}, {"f.csv": "PLANNED"}, see=statuses),
]
CASES = FORMAT_CASES + COPY_CASES


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
    clause = f"{option} = {case.value}".replace("{folder}", str(world.folder)) if option else ""
    if case.kind is not None:
        clause = f"FILE_FORMAT = (TYPE = {case.kind} {case.beside} {clause})"
    text = f"COPY INTO '{world.into}' FROM '{world.stage}/' {clause}"
    return seen_after(world, lambda: sql(text, settings=world.settings))


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


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_option_is_not_ignored(tmp_path: Path, case: Case) -> None:
    """With the option things are as told, in every spelling; without it they are otherwise."""
    plain = world_of(tmp_path / "plain", case)
    try:
        assert case.see(by_statement(plain, case, None)) != case.expected
    except TableNotFoundError:
        assert case.table is None
    for option in case.options.split():
        world = world_of(tmp_path / option, case)
        assert case.see(by_statement(world, case, option)) == case.expected
    world = world_of(tmp_path / "keywords", case)
    assert case.see(by_keywords(world, case)) == case.expected


def test_every_option_has_a_case() -> None:
    """No option is known to the parser without a test that fails when it is ignored."""
    told = {(case.kind, option) for case in CASES for option in case.options.split()}
    like = {"TSV": "CSV", "TEXT": "CSV", "NDJSON": "JSON"}
    like |= dict.fromkeys(("MYSQL", "POSTGRESQL", "HIVE"), "CSV")
    known = {(None, option) for option, (target, _) in COPY.items() if target != NOTHING}
    known |= {
        (like.get(kind, kind), option)
        for kind, (_, options, _) in FORMATS.items()
        for option, (target, _) in options.items()
        if target != NOTHING
    }
    assert known == told
    assert {target for target, _ in DATABRICKS_COPY.values()} == {"force", "evolve"}


def test_every_keyword_has_a_case() -> None:
    """The same for the keywords of ``calque.load``."""
    told = {name for case in COPY_CASES for name in case.keywords}
    elsewhere = {
        *("stage", "into", "format", "format_options", "settings"),  # in every case
        *("columns", "schema", "lease_seconds"),  # below
        *("spark", "progress"),  # in tests/loader/run/engines
    }
    assert set(inspect.signature(load).parameters) == told | elsewhere


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.stage.mkdir()
    (made.stage / "f.csv").write_text("a,b\nx,1\n")
    return made


def test_databricks_options(world: World) -> None:
    """FORCE and mergeSchema of COPY_OPTIONS; TRUE for what is done anyway, never FALSE."""
    loaded(world)
    (world.stage / "f.csv").write_text("a,b,c\nx,1,2\n")
    copy = f"COPY INTO delta.`{world.table}` FROM '{world.stage}/' FILEFORMAT = CSV "
    options = "FORMAT_OPTIONS ('header' = 'true', 'inferSchema' = 'true', 'mergeSchema' = 'true') "
    more = "COPY_OPTIONS ('force' = 'true', 'mergeSchema' = 'true')"
    sql(copy + options + more, settings=world.settings)
    assert Seen(world, None, None).rows == [("x", 1, 2), ("x", 1, None)]
    for name in ("inferSchema", "mergeSchema"):
        with pytest.raises(StatementInvalid, match="cannot be turned off"):
            parse(f"{copy} FORMAT_OPTIONS ('{name}' = 'false')")


def test_by_position(world: World) -> None:
    """BY POSITION fills columns in the order of the file, whatever it names them."""
    (world.stage / "f.csv").unlink()
    (world.stage / "f.parquet").write_bytes(parquet(pa.table({"b": ["x"], "a": [1]})))
    DeltaTable.create(str(world.table), AB)
    copy = "COPY INTO '{0}' {1} FROM '{2}/' FILEFORMAT = PARQUET"
    with pytest.raises(CalqueError):
        sql(copy.format(world.table, "", world.stage), settings=world.settings)
    sql(copy.format(world.table, "BY POSITION", world.stage), settings=world.settings)
    assert Seen(world, None, None).rows == [("x", 1)]


def test_columns_and_schema(world: World) -> None:
    """The column list says what fields fill; the schema is that of the table to be made."""
    (world.stage / "f.csv").write_text("1,x\n")
    wide = pa.schema([("a", pa.string()), ("b", pa.int32()), ("c", pa.string())])
    load(
        f"{world.stage}/",
        str(world.table),
        format="csv",
        columns=["b", "a"],
        schema=wide,
        settings=world.settings,
    )
    assert Seen(world, None, None).rows == [("x", 1, None)]
    assert DeltaTable(str(world.table)).to_pyarrow_table().schema.field("b").type == pa.int32()


def test_lease_seconds(world: World) -> None:
    """A load is held for as long as was asked."""
    load(f"{world.stage}/", str(world.table), lease_seconds=777, settings=world.settings)
    with open_ledger(str(world.folder / "ledger.db")) as ledger, ledger.read() as connection:
        row = connection.execute(select(loads.c.started_at, loads.c.lease_until)).one()
    assert 777 <= (row.lease_until - row.started_at) / 1e6 < 800


@pytest.mark.parametrize("kind", ["TSV", "TEXT"])
def test_tab_separated(world: World, kind: str) -> None:
    """TSV and TEXT are delimited by tabs unless told otherwise."""
    (world.stage / "f.csv").write_text("x\t1\n")
    DeltaTable.create(str(world.table), AB)
    load(f"{world.stage}/", str(world.table), format=kind, settings=world.settings)
    assert Seen(world, None, None).rows == [("x", 1)]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"partition_by": ["b"]}, "partitioned by nothing, not by b"),
        ({"rescue_column": "b"}, "b is BIGINT and cannot hold TEXT"),
        ({"rescue_column": "nope"}, "no column nope"),
        ({"metadata_columns": {"b": "file"}}, "b is BIGINT and cannot hold TEXT"),
        ({"metadata_columns": {"nope": "file"}}, "no column nope"),
        ({"purge": True, "archive": "old/"}, "choose one"),
        ({"format": "json", "match_by": "none"}, "names and no positions"),
        ({"format": "csv", "format_options": {"DATE_FORMAT": "DD-MON-YYYY"}}, "MON"),
        ({"rescue_column": "a", "columns": ["a"]}, "named twice"),
    ],
)
def test_what_could_do_nothing_is_refused(world: World, options: dict[str, Any], why: str) -> None:
    """An option that cannot have its effect on this table or format is an error, not a shrug."""
    loaded(world)
    (world.stage / "g.csv").write_text("a,b\ny,2\n")
    with pytest.raises(StatementInvalid, match=why):
        load(f"{world.stage}/", str(world.table), settings=world.settings, **options)
    assert Seen(world, None, None).rows == [("x", 1)]


@pytest.mark.parametrize(
    "option",
    [
        "RESCUE_COLUMN = 'r'",
        "INCLUDE_METADATA = (f = METADATA$FILENAME)",
        "ENABLE_SCHEMA_EVOLUTION = TRUE",
        "MATCH_BY_COLUMN_NAME = CASE_SENSITIVE",
        "VALIDATION_MODE = RETURN_ERRORS",
    ],
)
def test_what_a_select_cannot_do_is_refused(option: str) -> None:
    """Options that a SELECT would pass by are refused beside one."""
    with pytest.raises(StatementInvalid, match="SELECT"):
        parse(f"COPY INTO t FROM (SELECT $1 FROM 'in/') {option}")


GRANTED = {
    "LOAD_MODE": ("FULL_INGEST", "SOMEHOW"),
    "TRUNCATECOLUMNS": ("FALSE", "TRUE"),
    "ENFORCE_LENGTH": ("TRUE", "FALSE"),
    "ESCAPE_UNENCLOSED_FIELD": ("NONE", "'x'"),
    "MULTI_LINE": ("TRUE", "FALSE"),
    "MULTILINE": ("TRUE", "FALSE"),
}
"""Options that other systems have: what is done in any case, and what is refused."""


@pytest.mark.parametrize("option", GRANTED)
def test_granted_or_refused(option: str) -> None:
    """An option that changes nothing is granted where that is so, else refused with the reason."""
    granted, refused = GRANTED[option]
    where = "{}" if option in COPY else "FILE_FORMAT = (TYPE = CSV {})"
    copy = "COPY INTO t FROM 'in/' "
    assert parse(copy + where.format(f"{option} = {granted}")).stage == "in/"
    with pytest.raises(StatementInvalid, match=f"{option} cannot be"):
        parse(copy + where.format(f"{option} = {refused}"))


def test_every_granted_option_is_tried() -> None:
    """Each option without an effect is in the table above."""
    every = [COPY, *(options for _, options, _ in FORMATS.values())]
    found = {name for known in every for name, (target, _) in known.items() if target == NOTHING}
    assert found == set(GRANTED)


def test_escapes_outside_of_quotes() -> None:
    """Without quotes, or beside the same ESCAPE, it is ESCAPE; else it is refused."""
    copy = "COPY INTO t FROM 'in/' FILE_FORMAT = (TYPE = CSV {})"
    outside = "ESCAPE_UNENCLOSED_FIELD = '|'"
    bare = parse(copy.format(f"FIELD_OPTIONALLY_ENCLOSED_BY = NONE {outside}"))
    assert bare.format == CsvFormat(quote=None, escape="|")
    assert parse(copy.format(f"ESCAPE = '|' {outside}")).format == CsvFormat(escape="|")
    dump = parse(f"COPY INTO t FROM 'in/' FILE_FORMAT = (TYPE = HIVE {outside})").format
    assert isinstance(dump, CsvFormat)
    assert dump.escape == "|"
    for wrong in (outside, f"ESCAPE = 'x' QUOTE = NONE {outside}"):
        with pytest.raises(StatementInvalid, match="say the same there"):
            parse(copy.format(wrong))


@pytest.mark.parametrize(
    ("spelled", "good", "bad"),
    [("HEX", "00fF", ("0", "xy", "é")), ("BASE64", "AP8=", ("AP8", "*", "é"))],
)
def test_bytes_as_they_are_spelled(tmp_path: Path, spelled: str, good: str, bad: Any) -> None:
    """What is no such spelling is an error of its row, with its place."""
    world = World(tmp_path)
    world.stage.mkdir()
    (world.stage / "a.csv").write_text("".join(f"{one}\n" for one in (good, *bad, good)))
    DeltaTable.create(str(world.table), Schema.from_arrow(pa.schema([("v", pa.binary())])))
    report = sql(
        f"COPY INTO '{world.table}' FROM '{world.stage}/' ON_ERROR = CONTINUE "
        f"FILE_FORMAT = (TYPE = CSV BINARY_FORMAT = {spelled})",
        settings=world.settings,
        spark="local",
    )
    assert (report.rows_loaded, report.errors) == (2, 3)
    found = DeltaTable(str(world.table)).to_pyarrow_table().to_pylist()
    assert found == [{"v": b"\x00\xff"}] * 2


def test_databricks_words() -> None:
    """``mode``, ``rescuedDataColumn``, ``skipRows`` and the two options for blanks."""
    copy = "COPY INTO t FROM 'in/' FILEFORMAT = CSV FORMAT_OPTIONS "
    found = parse(
        copy + "('mode' = 'DROPMALFORMED', 'rescuedDataColumn' = 'rest', 'skipRows' = '2', "
        "'multiLine' = 'true', 'ignoreLeadingWhiteSpace' = 'true', "
        "'ignoreTrailingWhiteSpace' = 'true')"
    )
    assert str(found.on_error) == "CONTINUE"
    assert found.rescue_column == "rest"
    assert found.format == CsvFormat(skip_header=2, trim_space=True)
    for wrong in ("'mode' = 'PERMISSIVE'", "'ignoreLeadingWhiteSpace' = 'true'"):
        with pytest.raises(StatementInvalid):
            parse(f"{copy}({wrong})")
    with pytest.raises(StatementInvalid, match="a line as a row"):
        parse("COPY INTO t FROM 'in/' FILEFORMAT = TEXT")


@pytest.mark.parametrize(
    "twice",
    [
        "FORCE = TRUE FORCE = FALSE",
        "FILE_FORMAT = (TYPE = CSV QUOTE = 'x' QUOTE = 'y')",
        "FILE_FORMAT = (TYPE = CSV) FILE_FORMAT = (TYPE = CSV)",
        "FILEFORMAT = CSV FORMAT_OPTIONS ('sep' = ';') FORMAT_OPTIONS ('sep' = ',')",
        "FILEFORMAT = CSV COPY_OPTIONS ('force' = 'true') COPY_OPTIONS ('force' = 'true')",
    ],
)
def test_said_twice(twice: str) -> None:
    """An option that stands there twice is an error, whatever its values."""
    with pytest.raises(StatementInvalid, match="said twice"):
        parse(f"COPY INTO t FROM 'in/' {twice}")


def test_formats_by_name() -> None:
    """``FILE_FORMAT = 'name'`` is a format of the configuration; options beside it go before."""
    formats = {"ours": {"type": "csv", "field_delimiter": ";", "null_if": ["", "-"]}}
    copy = "COPY INTO t FROM 'in/' FILE_FORMAT = "
    expected = CsvFormat(field_delimiter=";", null_if=("", "-"))
    for spelled in ("'ours'", "ours", "(FORMAT_NAME = 'ours')"):
        assert parse(copy + spelled, formats).format == expected
    other = parse(copy + "(FORMAT_NAME = ours FIELD_DELIMITER = '|')", formats).format
    assert other == replace(expected, field_delimiter="|")
    with pytest.raises(StatementInvalid, match="no file format 'ors'"):
        parse(copy + "'ors'", formats)


def test_every_refusal_is_in_the_docs() -> None:
    """What is refused stands in the docs with its reason."""
    text = (Path(__file__).parents[3] / "docs" / "formats.md").read_text()
    for name, reason in REASONS.items():
        assert f"| `{name}` | {reason} |" in text
