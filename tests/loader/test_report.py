"""Reports: how they show themselves."""

from __future__ import annotations

import pyarrow as pa
import pytest

from calque.ledger.manifest import FileResult
from calque.loader.model.outcome import Status
from calque.loader.report import IN_MEMORY, RESULT_TYPES, SHOWN_IN_HTML, Report
from calque.values import count_of


def report(*rows: FileResult) -> Report:
    made = Report("lake/<sales>")
    for row in rows:
        made.files.add(row)
    return made


LOADED = FileResult("s3://b/a.csv", "a.csv", Status.LOADED, rows_parsed=3, rows_loaded=3, bytes=9)
FAILED = FileResult("s3://b/b.csv", "b.csv", Status.FAILED, errors=1, first_error="<i> & é")


def test_repr_is_short() -> None:
    """One line with the sums, however many files there were."""
    told = repr(report(LOADED, *[FAILED] * 500))
    assert told == "<Report of lake/<sales>: 3 rows from 1 file; 500 FAILED, 1 LOADED>"
    assert repr(report()) == "<Report of lake/<sales>: 0 rows from 0 files; no files>"


def test_html_is_escaped_and_bounded() -> None:
    """Names and messages are text, not markup; a big report is cut."""
    told = report(FAILED, *[LOADED] * 1000)._repr_html_()
    assert "&lt;i&gt; &amp; é" in told
    assert "<sales>" not in told
    assert told.count("<tr>") == SHOWN_IN_HTML + 1


def test_html_leaves_skipped_files_out() -> None:
    """Of files that were loaded before, a notebook shows the count alone."""
    made = report(LOADED)
    made.files.skip("s3://b/old.csv", "old.csv", "SKIPPED_LOADED", 1, None)
    told = made._repr_html_()
    assert "1 SKIPPED_LOADED" in told
    assert "old.csv" not in told


def test_arrow_has_every_row() -> None:
    """The result rows with all their columns, in order; without rows, the columns."""
    assert report(LOADED, FAILED).to_arrow().to_pylist() == [LOADED.to_json(), FAILED.to_json()]
    assert report().to_arrow().schema == report(LOADED).to_arrow().schema
    assert list(RESULT_TYPES) == list(FileResult.__slots__)
    assert isinstance(report().to_arrow(), pa.Table)


def test_rows_that_wait_in_a_file_are_the_same() -> None:
    """Many rows give back what few would, in their order: names that are no UTF-8 among them."""
    made = report(LOADED, FAILED)
    for number in range(2 * IN_MEMORY):
        made.files.skip(f"file:///\udcff{number}", "é", "SKIPPED_LOADED", number, None)
    made.files.add(LOADED)
    found = list(made.files)
    assert found[:2] == [LOADED, FAILED]
    assert found[-1] == LOADED
    assert [one.bytes for one in found[2:-1]] == list(range(2 * IN_MEMORY))
    assert found[2] == FileResult("file:///\udcff0", "é", "SKIPPED_LOADED")
    assert len(made.files) == len(found)


def test_pandas_has_every_row() -> None:
    """The same as a DataFrame."""
    pytest.importorskip("pandas")
    assert list(report(LOADED, FAILED).to_pandas()["status"]) == ["LOADED", "FAILED"]


def test_one_is_not_many() -> None:
    """``1 file``, and thousands with commas."""
    assert (count_of(1, "file"), count_of(0, "row")) == ("1 file", "0 rows")
    assert count_of(12345, "row") == "12,345 rows"
