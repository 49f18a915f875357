"""`calque preview`: what would be read, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import calque as package
from calque.errors import NotFound, StatementInvalid
from tests.cli.conftest import Calque

GERMAN = "nr;preis;tag\n1;1,50;31.12.2026\n2;2,25;01.01.2027\n"


def test_it_tells_dialect_schema_and_rows(calque_here: Calque, folder: Path) -> None:
    """People see how files are read, the columns with types, and the first rows."""
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_text(GERMAN)
    done = calque_here("preview", "in/", "--rows", 1)
    assert done.returncode == 0, done.stderr
    assert "1 file, 49 B" in done.stdout
    assert "CSV: delimiter ';', quote \", with a header, utf-8" in done.stdout
    assert "nr\tBIGINT\n" in done.stdout
    assert done.stdout.rstrip().endswith("1\t1,50\t31.12.2026")


def test_nothing_is_written(calque_here: Calque, folder: Path, tmp_path: Path) -> None:
    """No ledger, no table, no state: the disk is as it was."""
    (folder / "a.csv").write_text("id,name\n1,x\n")
    before = sorted(tmp_path.rglob("*"))
    assert calque_here("preview", "a.csv").returncode == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_programs_get_json(calque_here: Calque, folder: Path) -> None:
    """The same as one document; the flags of a load mean what they mean there."""
    (folder / "a.csv").write_text(GERMAN)
    done = calque_here(
        "preview", "a.csv", "--json", "--format", "csv", "-o", "decimal_point=,",
        "-o", "date_format=DD.MM.YYYY", "--delimiter", ";", "--header",
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert (told["files"], told["is_all"], told["format"]) == (1, True, "csv")
    assert [one["type"] for one in told["columns"]] == ["BIGINT", "DOUBLE", "DATE"]
    assert told["rows"][0] == {"nr": 1, "preis": 1.5, "tag": "2026-12-31"}


def test_an_error_names_the_flag(calque_here: Calque, folder: Path) -> None:
    """Two formats in one stage, and a line that may be a header: told in words of the command."""
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_text("x,y\nz,w\n")
    done = calque_here("preview", "in/")
    assert done.returncode == 2
    assert "--header or --no-header" in done.stderr
    (folder / "in" / "b.json").write_text('{"a": 1}\n')
    done = calque_here("preview", "in/")
    assert done.returncode == 2
    assert "--pattern" in done.stderr


def test_nothing_to_look_at_is_an_error(calque_here: Calque, folder: Path) -> None:
    """A stage that is not there, one without files, and a file that FILES names in vain."""
    (folder / "empty").mkdir()
    for arguments in (("nowhere/",), ("empty/",), ("empty/", "--file", "a.csv")):
        done = calque_here("preview", *arguments)
        assert done.returncode == 1, arguments
        assert "Traceback" not in done.stderr


ROWS = pa.table({"id": [1, 2], "day": pa.array([0, None], pa.date32()), "raw": [b"\x00", b"x"]})


@pytest.mark.parametrize("kind", ["parquet", "orc", "json", "tsv"])
def test_every_format(kind: str, tmp_path: Path) -> None:
    """From Python too: each format tells its columns and rows."""
    file = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(ROWS, file)
    elif kind == "orc":
        orc.write_table(ROWS, file)
    elif kind == "json":
        file.write_text('{"id": 1, "day": "1970-01-01"}\n{"id": 2, "day": null}\n')
    else:
        file.write_text("id\tday\n1\t1970-01-01\n2\t\n")
    seen = package.preview(file, rows=1)
    assert seen.schema.names[:2] == ["id", "day"]
    told = seen.to_json()
    assert (told["rows"][0]["id"], told["rows"][0]["day"]) == (1, "1970-01-01")
    assert json.dumps(told)
    assert "1970-01-01" in seen._repr_html_()
    assert "1 file" in repr(seen)


def test_python_raises_what_is_wrong(tmp_path: Path) -> None:
    """Errors of ours; a keyword that a load has not is a TypeError as there."""
    with pytest.raises(NotFound):
        package.preview(tmp_path / "nowhere")
    (tmp_path / "a.bin").write_bytes(b"x")
    with pytest.raises(StatementInvalid, match="cannot be told from its name"):
        package.preview(tmp_path / "a.bin")
    with pytest.raises(TypeError, match="formt"):
        package.preview(tmp_path, formt="csv")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="purge"):
        package.preview(tmp_path, purge=True)


def test_a_hostile_name_cannot_trick_the_terminal(calque_here: Calque, folder: Path) -> None:
    """Control characters in names and values are shown escaped."""
    (folder / "a.csv").write_text("id,na\x1bme\n1,\x1b[31mred\n")
    done = calque_here("preview", "a.csv", "--header")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout


def test_rows_that_would_be_refused_are_told(calque_here: Calque, folder: Path) -> None:
    """A preview leaves no row out without a word: how many among those shown, and the first."""
    rows = "".join(f"{number},x\n" for number in range(4, 100))
    (folder / "a.csv").write_text(f"id,name\n1,x\n2\n3,x\n{rows}99999\n")
    done = calque_here("preview", "a.csv", "--rows", 3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("1\tx\n3\tx\n4\tx")
    assert (
        "1 row among these would be refused; the first: a.csv, line 3, character 2" in done.stderr
    )
    assert "would be refused" not in calque_here("preview", "a.csv", "--rows", 1).stderr
    told = json.loads(calque_here("preview", "a.csv", "--rows", 1000, "--json").stdout)
    assert [one["line"] for one in told["refused"]] == [3, 101]
