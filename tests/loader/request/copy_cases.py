"""Options of COPY INTO, each with what shows that it is not ignored."""

from __future__ import annotations

import os
from typing import Any

from deltalake import DeltaTable
from sqlalchemy import delete, update

from calque.ledger import open_ledger
from calque.ledger.schema import files, tables
from calque.loader.api import load
from tests.loader.request.option_case import Case, Seen, World

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
