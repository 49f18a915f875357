"""The report of a statement: a result row for every file, and the sums."""

from __future__ import annotations

import marshal
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import islice
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any

from calque.errors import Unsupported
from calque.late_module import LateModule
from calque.ledger.manifest import FileResult
from calque.loader.model.outcome import Status
from calque.loader.model.plan import WritePlan
from calque.values import count_of, size_text

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = LateModule("pyarrow")

IN_MEMORY = 20_000
"""Result rows that are kept in memory; the others wait in a file."""
SHOWN_IN_HTML = 50
RESULT_TYPES = {
    "location": "string",
    "name": "string",
    "status": "string",
    "rows_parsed": "int64",
    "rows_loaded": "int64",
    "errors": "int64",
    "first_error": "string",
    "bytes": "int64",
    "seconds": "float64",
    "message": "string",
}
"""The result rows as :meth:`Report.to_arrow` gives them: the fields of FileResult."""
_values = attrgetter(*FileResult.__slots__)

NOT_LOADED = "not loaded: "
NOT_READ = "not read: "
"""Begin the message of a file that was given up with its load, for no fault of its own."""
_LEFT = {Status.SKIPPED_LOADED, Status.SKIPPED_UNCERTAIN}
GOOD = {Status.LOADED, Status.SKIPPED_LOADED, Status.EMPTY, Status.PLANNED}


class ResultRows:
    """Result rows in the order they came; beyond some thousands they wait in a temporary file."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._spilled: IO[bytes] | None = None
        self.counts: Counter[str] = Counter()
        self.rows_loaded = 0
        self.errors = 0
        self.bytes = 0

    def add(self, row: FileResult) -> None:
        """The row of a file that was worked on."""
        self.rows_loaded += row.rows_loaded
        self.errors += row.errors
        if row.status in (Status.LOADED, Status.PARTIALLY_LOADED, Status.EMPTY):
            self.bytes += row.bytes
        location, name, status, *rest = _values(row)
        self.counts[str(status)] += 1
        self._rows.append((location, name, str(status), *rest))
        if len(self._rows) >= IN_MEMORY:
            self._spill()

    def skip(self, location: str, name: str, status: str, size: int, message: str | None) -> None:
        """The row of a file that was left alone; there may be millions, so it costs little."""
        self.counts[status] += 1
        rows = self._rows
        rows.append((location, name, status, 0, 0, 0, None, size, 0.0, message))
        if len(rows) >= IN_MEMORY:
            self._spill()

    def _spill(self) -> None:
        if self._spilled is None:
            # The file lives as long as the report, so no context can close it here.
            self._spilled = tempfile.TemporaryFile()  # noqa: SIM115
        # Read by nobody but this process, so the quickest form there is of plain values will do.
        packed = marshal.dumps(self._rows)
        self._spilled.seek(0, 2)
        self._spilled.write(len(packed).to_bytes(8, "big") + packed)
        self._rows = []

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[FileResult]:
        if self._spilled is not None:
            end = self._spilled.seek(0, 2)
            at = 0
            while at < end:
                self._spilled.seek(at)
                size = int.from_bytes(self._spilled.read(8), "big")
                rows = marshal.loads(self._spilled.read(size))
                at = self._spilled.tell()
                yield from (FileResult(*row) for row in rows)
        yield from (FileResult(*row) for row in self._rows)

    def close(self) -> None:
        if self._spilled is not None:
            self._spilled.close()
            self._spilled = None


@dataclass(slots=True, repr=False)
class Report:
    """What a statement did. ``files`` has a row for every file that was looked at."""

    table: str
    files: ResultRows = field(default_factory=ResultRows)
    load_ids: list[str] = field(default_factory=list)
    table_version: int | None = None
    engine: str | None = None
    seconds: float = 0.0
    ignored: int = 0
    """Files passed over by their names: hidden, or still being written."""
    forced: bool = False
    dry_run: bool = False
    replayed: bool = False
    """The label was loaded before: nothing was done, this is the report of then."""
    recovered: list[str] = field(default_factory=list)
    purged: int = 0
    """Sources that were removed after their load."""
    archived: int = 0
    """Sources that were moved to the archive after their load."""
    plan: WritePlan | None = None
    """What a dry run would do."""
    sample: pa.Table | None = None
    """The rows that VALIDATION_MODE = RETURN_n_ROWS asked for."""
    notes: list[str] = field(default_factory=list)
    only_failed: bool = False
    only_news: bool = False
    """Files that were skipped are no rows: a watch meets them in every cycle."""
    matched: int = 0
    """Files of the stage that were looked at, skipped ones too."""
    row_errors: list[dict[str, Any]] = field(default_factory=list)
    """The errors that VALIDATION_MODE asked for; those of a load stand in the ledger."""

    @property
    def rows_loaded(self) -> int:
        return self.files.rows_loaded

    @property
    def errors(self) -> int:
        return self.files.errors

    @property
    def bytes_loaded(self) -> int:
        return self.files.bytes

    def count(self, status: Status) -> int:
        """How many files ended so."""
        return self.files.counts[status]

    @property
    def files_loaded(self) -> int:
        return sum(
            self.count(one) for one in (Status.LOADED, Status.PARTIALLY_LOADED, Status.EMPTY)
        )

    @property
    def complete(self) -> bool:
        """Every file is in the table, whole, now or since before; or would be."""
        return all(status in GOOD for status in self.files.counts)

    @property
    def failed(self) -> bool:
        """Nothing was loaded, and files failed."""
        return not self.files_loaded and self.count(Status.FAILED) > 0

    def rows(self) -> Iterator[FileResult]:
        """The result rows; only those that did not go well where the statement asked so."""
        for row in self.files:
            if self.only_news and row.status in _LEFT:
                continue
            if not self.only_failed or row.status not in GOOD:
                yield row

    def __repr__(self) -> str:
        return f"<Report of {self.table}: {self.summary}>"

    @property
    def summary(self) -> str:
        """Rows, and how many files ended how, in a line."""
        counts = ", ".join(
            f"{count} {status}" for status, count in sorted(self.files.counts.items())
        )
        told = f"{count_of(self.rows_loaded, 'row')} from {count_of(self.files_loaded, 'file')}"
        if self.dry_run:
            told = "dry run"
        return f"{told}; {counts or 'no files'}"

    def _repr_html_(self) -> str:
        """For notebooks: the sums, and the first rows of those that are no mere skips."""
        news = (row for row in self.rows() if row.status not in _LEFT)
        shown = list(islice(news, SHOWN_IN_HTML))
        lines = [f"<p><b>{escape(self.table)}</b>: {escape(self.summary)}</p>"]
        lines += [f"<p>{escape(note)}</p>" for note in self.notes]
        if shown:
            lines.append(_html_table(shown))
        return "\n".join(lines)

    def to_arrow(self) -> pa.Table:
        """The result rows as a table; one without rows has the columns too."""
        schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in RESULT_TYPES.items()])
        columns: dict[str, list[Any]] = {name: [] for name in RESULT_TYPES}
        for row in self.rows():
            for name, value in row.to_json().items():
                columns[name].append(value if name != "status" else str(value))
        return pa.table(columns, schema=schema)

    def to_pandas(self) -> Any:
        """The result rows as a pandas DataFrame."""
        try:
            return self.to_arrow().to_pandas()
        except ModuleNotFoundError as error:
            raise Unsupported(
                "to_pandas() needs pandas", hint="pip install pandas, or use to_arrow()."
            ) from error

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "loads": self.load_ids,
            "table_version": self.table_version,
            "files_loaded": self.files_loaded,
            "rows_loaded": self.rows_loaded,
            "errors": self.errors,
            "bytes_loaded": self.bytes_loaded,
            "seconds": round(self.seconds, 3),
            "engine": self.engine,
            "statuses": dict(self.files.counts),
            "ignored": self.ignored,
            "forced": self.forced,
            "dry_run": self.dry_run,
            "replayed": self.replayed,
            "recovered": self.recovered,
            "purged": self.purged,
            "archived": self.archived,
            "notes": self.notes,
            "plan": None if self.plan is None else _outline(self.plan),
            "sample": None if self.sample is None else self.sample.to_pylist(),
            "row_errors": self.row_errors,
            "files": [row.to_json() for row in self.rows()],
        }


def _html_table(rows: Sequence[FileResult]) -> str:
    names = ("name", "status", "rows_loaded", "errors", "bytes", "first_error", "message")
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "\n".join(
        "<tr>"
        + "".join(f"<td>{_html_cell(name, getattr(row, name))}</td>" for name in names)
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _html_cell(name: str, value: Any) -> str:
    if name == "bytes":
        return size_text(value)
    return "" if value is None else escape(str(value))


def _outline(plan: WritePlan) -> dict[str, Any]:
    return {
        "format": plan.format.kind,
        "files": sum(1 for _ in plan.files),
        "bytes": plan.bytes,
        "tasks": len(plan.tasks),
    }
