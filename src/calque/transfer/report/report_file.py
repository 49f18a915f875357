"""The report of a run as a file: a row for every object, as JSON lines, CSV or Parquet.

Rows are appended as JSON lines, after the act. CSV and Parquet are made of them when the run is
over; until then the lines lie beside them (``FILE.rows``), so that a run that was killed has told
what it did, whatever the format. Whoever resumes appends to them, and leaves out the objects that
have a row already.
"""

from __future__ import annotations

import csv
import errno
import json
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from calque.errors import InvalidInput, MissingExtra, NotFound, PermissionDenied, ResourceExhausted
from calque.transfer.model import OUTCOMES, ROW_FIELDS, Outcome, Row

Format = Literal["jsonl", "csv", "parquet"]
_NUMBERS = {"size": int, "target_size": int, "seconds": float}
_TAIL = 64 * 1024
_GROUP = 10_000
"""Rows of Parquet that are in memory at a time."""


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format by the file's ending; InvalidInput where it is none of ours."""
    ending = Path(path).suffix.lower().removeprefix(".")
    for known in get_args(Format):
        if ending == known:
            return known  # type: ignore[no-any-return]
    raise InvalidInput(
        f"the report {os.fspath(path)!r} ends in none of .jsonl, .csv, .parquet",
        hint="The ending says how it is written.",
    )


class ReportFile:
    """Appends rows. Safe between threads; a row is in the file once ``flush`` has returned."""

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False) -> None:
        self.path = Path(path)
        self._format = format_of(path)
        if self._format == "parquet":
            _pyarrow()  # missing, it is told before any work is done
        self._lock = threading.Lock()
        try:
            if resume:
                _cut_torn(self.lines)
                _drop_kept(self.lines)
            else:
                # Until it is over, an older file of the same name must not be taken for this one's.
                self.path.unlink(missing_ok=True)
            self._file = open(self.lines, "ab" if resume else "wb")  # noqa: SIM115
        except FileNotFoundError as error:
            if not resume:
                raise _refuse(self.path, error) from error
            raise NotFound(
                f"the report {self.path} of the run that is gone on with is not there any more",
                hint="What has a row in it could not be told. Put it back, or begin anew with "
                "--restart.",
            ) from error
        except OSError as error:
            raise _refuse(self.path, error) from error

    @property
    def lines(self) -> Path:
        """Where rows are appended."""
        return (
            self.path if self._format == "jsonl" else self.path.with_name(self.path.name + ".rows")
        )

    def write(self, rows: Iterable[Row]) -> None:
        """Append rows, each after its act.

        What was moved or deleted no listing shows again: its row outlives a killed process.
        """
        several = tuple(rows)
        text = "".join(json.dumps(row.to_json()) + "\n" for row in several).encode()
        acts = any(row.route is not None or row.outcome == "deleted" for row in several)
        with self._lock:
            try:
                self._file.write(text)
                if acts:
                    self._file.flush()
            except OSError as error:
                raise _refuse(self.path, error) from error

    def flush(self) -> None:
        """Bring all rows to the disk."""
        with self._lock:
            try:
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                raise _refuse(self.path, error) from error

    def rows(self) -> Iterator[Row]:
        """All rows that were flushed so far."""
        return _read_lines(self.lines)

    def publish(self) -> None:
        """Make the CSV or Parquet file of all rows so far. It stands under its name when it is on
        the disk, and the lines stay: nothing of them is lost, whatever this is ended by."""
        self.flush()
        if self._format == "jsonl":
            return
        fresh = self.path.with_name(self.path.name + ".new")
        try:
            rows = _read_lines(self.lines)
            if self._format == "csv":
                _write_csv(fresh, rows)
            else:
                _write_parquet(fresh, rows)
            _sync(fresh)
            fresh.rename(self.path)
            _sync(self.path.parent)
        except OSError as error:
            raise _refuse(self.path, error) from error
        finally:
            with suppress(OSError):
                fresh.unlink()

    def close(self, *, over: bool = False) -> None:
        """End the report. Of a run that is ``over`` its lines go, if they were published as
        something else; of any other they stay, for whoever resumes it."""
        with self._lock:
            try:
                self._file.close()
                if over and self.lines != self.path:
                    self.lines.unlink()
            except OSError as error:
                raise _refuse(self.path, error) from error


def _sync(path: Path) -> None:
    """Bring a file, or the names of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cut_torn(lines: Path) -> None:
    """Cut off half a line, which a process that was killed has left at the end."""
    with open(lines, "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - _TAIL)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        file.truncate(end)


def _drop_kept(lines: Path) -> None:
    """Take out rows of deletes that were withheld: whether they are is decided anew.

    They tell of nothing that was done, and there are none but in a run that died at its very end.
    """
    with open(lines, "rb") as file:
        if not any(_is_kept(line) for line in file):
            return
    fresh = lines.with_name(lines.name + ".new")
    try:
        with open(lines, "rb") as file, open(fresh, "wb") as into:
            into.writelines(line for line in file if not _is_kept(line))
            into.flush()
            os.fsync(into.fileno())  # it takes the place of rows that are on the disk
        fresh.rename(lines)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def _is_kept(line: bytes) -> bool:
    return b'"kept"' in line and Row.from_json(json.loads(line)).outcome == "kept"


def read_report(path: str | os.PathLike[str]) -> Iterator[Row]:
    """The rows of a report of any format, one by one."""
    kind, file = format_of(path), Path(path)
    if not file.exists():
        # Of a run that was killed or is still under way: its rows so far.
        file = file.with_name(file.name + ".rows")
        kind = "jsonl"
    try:
        rows: Iterable[Row] = {"jsonl": _read_lines, "csv": _read_csv, "parquet": _read_parquet}[
            kind
        ](file)
        yield from rows
    except FileNotFoundError as error:
        raise NotFound(f"there is no report {os.fspath(path)!r}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{os.fspath(path)!r} is no report of calque: {error}") from error
    except OSError as error:
        raise _refuse(Path(path), error) from error


def parse_outcomes(text: str) -> frozenset[Outcome]:
    """``failed,skipped`` as outcomes; who asks for failed gets those that changed midway too."""
    chosen: set[Outcome] = set()
    for name in filter(None, (part.strip().replace("_", " ") for part in text.split(","))):
        found: Outcome | None = next((each for each in OUTCOMES if each == name), None)
        if found is None:
            raise InvalidInput(
                f"a report has no outcome {name!r}", hint=f"One of {', '.join(OUTCOMES)}."
            )
        chosen |= {found, "changed"} if found == "failed" else {found}
    if not chosen:
        raise InvalidInput("no outcome is named", hint="For example failed,skipped.")
    return frozenset(chosen)


def read_paths(path: str | os.PathLike[str], only: frozenset[Outcome]) -> tuple[str, ...]:
    """The paths of a report that ended so, each once."""
    return tuple(dict.fromkeys(row.path for row in read_report(path) if row.outcome in only))


def _read_lines(path: Path) -> Iterator[Row]:
    with open(path, "rb") as file:
        for line in file:
            if line.endswith(b"\n"):  # the last of a run that goes on may be half
                yield Row.from_json(json.loads(line))


def _write_csv(path: Path, rows: Iterator[Row]) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(ROW_FIELDS)
        for row in rows:
            writer.writerow([getattr(row, name) for name in ROW_FIELDS])


def _read_csv(path: Path) -> Iterator[Row]:
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        for told in csv.DictReader(file):
            yield Row.from_json({name: _cell(name, told[name]) for name in ROW_FIELDS})


def _cell(name: str, text: str) -> Any:
    if text == "":
        return "" if name == "why" else None
    return _NUMBERS.get(name, str)(text)


def _write_parquet(path: Path, rows: Iterator[Row]) -> None:
    pa, pq = _pyarrow()
    kinds = {"size": pa.int64(), "target_size": pa.int64(), "seconds": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in ROW_FIELDS])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := list(islice(rows, _GROUP)):
            columns = {name: [_utf8(getattr(row, name)) for row in group] for name in ROW_FIELDS}
            writer.write_table(pa.table(columns, schema=schema))


def _utf8(value: Any) -> Any:
    """Names of files that are no UTF-8 are escaped: Parquet cannot hold them."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _read_parquet(path: Path) -> Iterator[Row]:
    _, pq = _pyarrow()
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_GROUP):
            for told in batch.to_pylist():
                yield Row.from_json(told)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra.of("delta", "a report in Parquet") from error
    return pyarrow, pyarrow.parquet


def _refuse(path: Path, error: OSError) -> ResourceExhausted | PermissionDenied | InvalidInput:
    message = f"the report {path} cannot be used: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ResourceExhausted(message, hint="What was copied is copied. Make room and resume.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return PermissionDenied(message)
    return InvalidInput(message, hint="A report is a local file in a folder that exists.")
