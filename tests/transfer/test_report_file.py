"""Reports as files: each row once, in three formats, through kills."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from calque.errors import CalqueError, InvalidInput, NotFound
from calque.transfer.model import Row
from calque.transfer.report.report_file import (
    ReportFile,
    format_of,
    parse_outcomes,
    read_paths,
    read_report,
)

ROWS = [
    Row("a/b.csv", "copied", "new", size=3, target_size=3, route="server-side", seconds=0.25),
    Row('ä,"q"\nnew line', "failed", "size", why="no, really", size=0, error="NotFound"),
    Row("gone", "skipped", "filter", checksum="md5:xyz=="),
    Row("c", "changed", "time", size=None),
]
FORMATS = ("jsonl", "csv", "parquet")


def finish(file: ReportFile) -> None:
    """The report of a run that is over."""
    file.publish()
    file.close(over=True)


@pytest.mark.parametrize("kind", FORMATS)
def test_round_trip(tmp_path: Path, kind: str) -> None:
    """What was written is read back, whatever the format, and nothing else is left."""
    file = ReportFile(tmp_path / f"r.{kind}")
    file.write(ROWS[:2])
    file.write(ROWS[2:])
    finish(file)
    assert list(read_report(tmp_path / f"r.{kind}")) == ROWS
    assert [each.name for each in tmp_path.iterdir()] == [f"r.{kind}"]


@pytest.mark.parametrize("kind", FORMATS)
def test_no_row(tmp_path: Path, kind: str) -> None:
    """A run without objects has a report without rows."""
    finish(ReportFile(tmp_path / f"r.{kind}"))
    assert list(read_report(tmp_path / f"r.{kind}")) == []


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    """Lines and CSV keep them exactly; Parquet, which cannot, escapes them."""
    row = Row("a\udcff", "copied", "new")
    for kind in FORMATS:
        file = ReportFile(tmp_path / f"r.{kind}")
        file.write([row])
        finish(file)
    assert next(read_report(tmp_path / "r.jsonl")) == row
    assert next(read_report(tmp_path / "r.csv")) == row
    assert pq.read_table(tmp_path / "r.parquet")["path"].to_pylist() == ["a\\udcff"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("torn", [b"", b'{"path": "ha', b"x" * 200_000])
def test_resume_after_a_kill(tmp_path: Path, kind: str, torn: bytes) -> None:
    """Half a row is cut off, however long, and rows go on behind the whole ones."""
    first = ReportFile(tmp_path / f"r.{kind}")
    first.write(ROWS[:2])
    first.close()
    with open(first.lines, "ab") as file:
        file.write(torn)
    assert list(read_report(tmp_path / f"r.{kind}")) == ROWS[:2]
    again = ReportFile(tmp_path / f"r.{kind}", resume=True)
    assert list(again.rows()) == ROWS[:2]
    again.write(ROWS[2:])
    again.publish()
    again.close()
    assert list(read_report(tmp_path / f"r.{kind}")) == ROWS
    finish(ReportFile(tmp_path / f"r.{kind}", resume=True))
    assert list(read_report(tmp_path / f"r.{kind}")) == ROWS
    assert [each.name for each in tmp_path.iterdir()] == [f"r.{kind}"]


def test_resume_without_the_file(tmp_path: Path) -> None:
    """A report that is gone is not taken for an empty one, and the words say what is missed."""
    for kind in FORMATS:
        with pytest.raises(NotFound, match="not there any more") as raised:
            ReportFile(tmp_path / f"r.{kind}", resume=True)
        assert "--restart" in (raised.value.hint or "")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_its_name_is_taken_by_what_is_on_the_disk(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, file, name, and only then the rows go: after a power cut one of both is whole."""
    steps: list[str] = []
    sync, rename, unlink = os.fsync, Path.rename, Path.unlink

    def synced(descriptor: int) -> None:
        steps.append(f"sync {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        sync(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        steps.append(f"rename {path.name}")
        return rename(path, target)

    def unlinked(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok=missing_ok)
        steps.append(f"unlink {path.name}")

    file = ReportFile(tmp_path / f"r.{kind}")
    file.write(ROWS)
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(Path, "unlink", unlinked)
    finish(file)
    name = f"r.{kind}"
    assert steps == [
        f"sync {name}.rows",
        f"sync {name}.new",
        f"rename {name}.new",
        f"sync {tmp_path.name}",
        f"unlink {name}.rows",
    ]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_stopped_while_it_is_made(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C among its rows: no half file is left, and all rows are there."""
    file = ReportFile(tmp_path / f"r.{kind}")
    file.write(ROWS)

    def stop(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".new"):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        file.publish()
    file.close()
    assert [each.name for each in tmp_path.iterdir()] == [f"r.{kind}.rows"]
    assert list(read_report(tmp_path / f"r.{kind}")) == ROWS


def test_threads(tmp_path: Path) -> None:
    """Rows of many threads are whole lines, each once."""
    file = ReportFile(tmp_path / "r.jsonl")
    rows = [[Row(f"{thread}/{n}", "copied", "new") for n in range(200)] for thread in range(8)]
    threads = [
        threading.Thread(target=lambda mine=mine: [file.write([row]) for row in mine])
        for mine in rows
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    finish(file)
    found = sorted(row.path for row in read_report(tmp_path / "r.jsonl"))
    assert found == sorted(row.path for mine in rows for row in mine)


def test_only_some_outcomes(tmp_path: Path) -> None:
    """Failed takes in what changed midway; each path comes once."""
    file = ReportFile(tmp_path / "r.jsonl")
    file.write([*ROWS, ROWS[1]])
    finish(file)
    assert read_paths(tmp_path / "r.jsonl", parse_outcomes("failed,skipped")) == (
        ROWS[1].path,
        "gone",
        "c",
    )
    assert parse_outcomes("up_to_date") == {"up to date"}


@pytest.mark.parametrize("text", ["", "faild", "copied,,x"])
def test_unknown_outcomes(text: str) -> None:
    """An outcome that no report has is refused by name."""
    with pytest.raises(InvalidInput):
        parse_outcomes(text)


def test_bad_reports(tmp_path: Path) -> None:
    """A file that is missing, none of ours or of no known ending is told so."""
    with pytest.raises(NotFound):
        list(read_report(tmp_path / "none.jsonl"))
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "x.parquet").write_text("no")
    for kind in FORMATS:
        with pytest.raises(InvalidInput, match="no report"):
            list(read_report(tmp_path / f"x.{kind}"))
    with pytest.raises(InvalidInput, match="ends in none"):
        format_of("report.txt")
    with pytest.raises(CalqueError, match="cannot be used"):
        ReportFile(tmp_path / "no folder" / "r.csv")


def test_lines_are_json(tmp_path: Path) -> None:
    """A line is one JSON object with every field, for any other program."""
    file = ReportFile(tmp_path / "r.jsonl")
    file.write(ROWS[:1])
    finish(file)
    told = json.loads((tmp_path / "r.jsonl").read_text())
    assert told["path"] == "a/b.csv"
    assert told["route"] == "server-side"
