"""The commands of loads, as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.command import run_command_text


def calque(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CALQUE_LEDGER_URL": str(folder / "ledger.db")}
    return run_command_text(*arguments, cwd=folder, env=environment)


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    """Two good files."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("id,name\n1,a\n2,b\n")
    (folder / "b.csv").write_text("id,name\n3,c\n")
    return folder


def test_load_again_history_and_ledger(tmp_path: Path, stage: Path) -> None:
    """Load, load again, look at the history and the records: files as people see them."""
    first = calque(tmp_path, "load", "in/", "--into", "lake/t", "--json")
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)
    assert (told["rows_loaded"], told["files_loaded"]) == (3, 2)
    again = calque(tmp_path, "load", "in/", "--into", "lake/t")
    assert (again.returncode, again.stdout) == (0, "")
    assert "2 SKIPPED_LOADED" in again.stderr
    every = calque(tmp_path, "load", "in/", "--into", "lake/t", "--all")
    assert every.stdout.count("SKIPPED_LOADED") == 2
    history = json.loads(calque(tmp_path, "history", "lake/t", "--json").stdout)
    assert [one["rows"] for one in history] == [3]
    shown = json.loads(calque(tmp_path, "ledger", "show", "lake/t", "--json").stdout)
    assert [one["rows"] for one in shown] == [2, 1]
    assert {(one["tenant"], one["database"], one["table"]) for one in shown} == {
        ("default", f"file://{tmp_path}/lake", "t")
    }
    assert "tenant default" in calque(tmp_path, "ledger", "show", "lake/t").stderr
    assert calque(tmp_path, "ledger", "forget", "lake/t", shown[0]["location"]).returncode == 0
    third = json.loads(calque(tmp_path, "load", "in/", "--into", "lake/t", "--json").stdout)
    assert third["files_loaded"] == 1


def test_quiet_is_quiet(tmp_path: Path, stage: Path) -> None:
    """With -q a load that goes well says nothing, and one that does not says why."""
    done = calque(tmp_path, "load", "in/", "--into", "lake/t", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (stage / "c.csv").write_text("id,name\nxx,c\n")
    failed = calque(tmp_path, "load", "in/", "--into", "lake/t", "-q")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "column id, character 1: 'xx' is no BIGINT" in failed.stderr
    assert "--on-error" in failed.stderr
    assert "ON_ERROR" not in failed.stderr


def test_one_file_is_not_files(tmp_path: Path, stage: Path) -> None:
    """The sums count as people do, and an error of usage names flags."""
    done = calque(tmp_path, "load", "in/b.csv", "--into", "lake/t")
    assert "1 row from 1 file in load" in done.stderr
    wrong = calque(tmp_path, "load", "in/", "--into", "lake/t", "--purge", "--archive", "old/")
    assert "--purge removes files and --archive moves them" in wrong.stderr


def test_archive_then_run_history_again(tmp_path: Path, stage: Path) -> None:
    """Loaded files are moved; what history shows can be given to `calque sql`; expire is calm."""
    done = calque(tmp_path, "load", "in/", "--into", "lake/t", "--archive", "old/")
    assert done.returncode == 0, done.stderr
    assert "2 sources moved to the archive" in done.stderr + done.stdout
    assert sorted(path.name for path in (tmp_path / "old").iterdir()) == ["a.csv", "b.csv"]
    assert list(stage.iterdir()) == []
    (stage / "c.csv").write_text("id,name\n4,d\n")
    (told,) = json.loads(calque(tmp_path, "history", "lake/t", "--json").stdout)
    again = calque(tmp_path, "sql", told["statement"], "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["archived"] == 1
    swept = json.loads(calque(tmp_path, "ledger", "expire", "--json").stdout)
    assert swept == {"files": 0, "loads": 0, "sidecars": 0, "ended": [], "troubles": []}


def test_partly_done_is_exit_code_3(tmp_path: Path, stage: Path) -> None:
    """Some rows or files left out: exit code 3, and the errors can be asked for."""
    calque(tmp_path, "load", "in/", "--into", "lake/t")
    (stage / "c.csv").write_text("id,name\n4,d\nfive,e\n")
    done = calque(tmp_path, "load", "in/", "--into", "lake/t", "--on-error", "continue", "--json")
    assert done.returncode == 3
    load_id = json.loads(done.stdout)["loads"][0]
    errors = json.loads(calque(tmp_path, "errors", load_id, "--json").stdout)
    assert [(one["line"], one["column"], one["value"]) for one in errors] == [(3, "id", "five")]
    assert (
        calque(tmp_path, "errors", "lake/t", "--json").stdout
        == json.dumps(errors, indent=2, ensure_ascii=False) + "\n"
    )


def test_errors_of_a_table_are_those_of_its_last_load_with_any(tmp_path: Path, stage: Path) -> None:
    """A load says the command; a table without errors says so, and what is neither is an error."""
    (stage / "c.csv").write_text("id,name\n4,d\n")
    calque(tmp_path, "load", "in/", "--into", "lake/t")
    none = calque(tmp_path, "errors", "lake/t")
    assert (none.returncode, none.stderr) == (0, "no load of lake/t has rejected a row\n")
    (stage / "d.csv").write_text("id,name\nfive,e\n5,f\n")
    done = calque(tmp_path, "load", "in/", "--into", "lake/t", "--on-error", "continue")
    (stage / "e.csv").write_text("id,name\n6,g\n")
    calque(tmp_path, "load", "in/", "--into", "lake/t")
    told = done.stderr.partition("see each rejected row with: calque ")[2].split()
    by_load, by_table = calque(tmp_path, *told), calque(tmp_path, "errors", "lake/t")
    assert by_load.stdout == by_table.stdout
    assert by_table.stderr == f"load {told[1]}\n"
    nothing = calque(tmp_path, "errors", "lake/none")
    assert nothing.returncode == 1
    assert "there is no load 'lake/none'" in nothing.stderr
    assert not (tmp_path / "lake" / "none").exists()


def test_errors_of_a_load_that_was_taken_in(tmp_path: Path, stage: Path) -> None:
    """Its table tells how many rows it rejected, and no ledger but its own which: that is said."""
    (stage / "d.csv").write_text("id,name\nfive,e\n5,f\n")
    schema = ("--schema", "id BIGINT, name STRING")
    calque(tmp_path, "load", "in/", "--into", "lake/t", "--on-error", "continue", *schema)
    (tmp_path / "ledger.db").unlink()
    calque(tmp_path, "load", "in/", "--into", "lake/t")
    for flags, found in ((), "file\tline"), (("--json",), "[]"):
        told = calque(tmp_path, "errors", "lake/t", *flags)
        assert told.returncode == 0
        assert told.stdout.startswith(found)
        assert "1 rejected row: which, only the ledger that ran the load knows" in told.stderr


def test_aborted_is_exit_code_1(tmp_path: Path, stage: Path) -> None:
    """A statement that is given up names file and line and ends with 1."""
    calque(tmp_path, "load", "in/", "--into", "lake/t")
    (stage / "c.csv").write_text("id,name\nfive,e\n")
    done = calque(tmp_path, "load", "in/", "--into", "lake/t")
    assert done.returncode == 1
    assert "c.csv" in done.stderr
    assert "line 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_first_load_that_failed_is_remembered_by_its_table(tmp_path: Path, stage: Path) -> None:
    """No table was made: its history and its errors are there all the same, by its name."""
    (stage / "c.csv").write_text("id,name\nfive\n")
    assert calque(tmp_path, "history", "lake/t").returncode == 1
    assert calque(tmp_path, "load", "in/", "--into", "lake/t").returncode == 1
    assert not (tmp_path / "lake/t/_delta_log").exists()
    past = json.loads(calque(tmp_path, "history", "lake/t", "--json").stdout)
    assert [(one["state"], one["errors"]) for one in past] == [("ABORTED", 1)]
    rejected = json.loads(calque(tmp_path, "errors", "lake/t", "--json").stdout)
    assert [one["line"] for one in rejected] == [2]


def test_aborted_tells_programs_everything(tmp_path: Path, stage: Path) -> None:
    """With --json an aborted statement gives the error and the row of every file, as JSON."""
    calque(tmp_path, "load", "in/", "--into", "lake/t")
    (stage / "c.csv").write_text("id,name\nfive,e\n")
    done = calque(tmp_path, "load", "in/", "--into", "lake/t", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["error"]["kind"]) == (1, "LoadAborted")
    assert [one["status"] for one in told["report"]["files"]] == ["SKIPPED_LOADED"] * 2 + ["FAILED"]
    errors = calque(tmp_path, "errors", told["report"]["loads"][0], "--json")
    assert [one["line"] for one in json.loads(errors.stdout)] == [2]


def test_validation_by_the_command(tmp_path: Path, stage: Path) -> None:
    """A validation ends with 0 where all is well and with 1 where it is not; flags are named."""
    load = ("load", "in/", "--into", "lake/t", "--validate")
    assert calque(tmp_path, *load, "return_errors").returncode == 0
    (stage / "c.csv").write_text("id,name\n1,x\n2\n")
    assert calque(tmp_path, *load, "return_errors").returncode == 1
    told = json.loads(calque(tmp_path, *load, "return_1_rows", "--json").stdout)
    assert told["sample"] == [{"id": 1, "name": "a"}]
    assert not (tmp_path / "lake").exists()
    wrong = calque(tmp_path, *load, "nonsense")
    assert (wrong.returncode, "--validate" in wrong.stderr) == (2, True)


def test_names_cannot_trick_a_terminal(tmp_path: Path, stage: Path) -> None:
    """Control characters in a file's name are shown escaped; a row stays a line."""
    (stage / "\x1b[31m\nx.csv").write_text("id,name\n4,d\n")
    done = calque(tmp_path, "load", "in/", "--into", "lake/t")
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) == 4


@pytest.mark.parametrize(
    ("text", "options", "row"),
    [
        ("1\t\\N\n", [r"null_if=\N", "escape=\\", r"field_delimiter=\t"], [1, None]),
        ("1,é\t\n", [r"null_if=é\t", "field_delimiter=,"], [1, None]),
        ("1\x01C:\\x\n", [r"field_delimiter=\001", r"null_if=C:\q"], [1, "C:\\x"]),
        ("1|a\\b\n", [r"field_delimiter=\x7c", r"null_if=\\N"], [1, "a\\b"]),
        ("1☃x\n", [r"field_delimiter=\u2603", r"null_if=\ud800"], [1, "x"]),
    ],
)
def test_options_are_spelled_in_a_shell(
    tmp_path: Path, text: str, options: list[str], row: list[object]
) -> None:
    """Backslashes spell tabs and codes; any other one is itself, and nothing is garbled."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(text)
    flags = [f"-o{option}" for option in ("parse_header=false", *options)]
    done = calque(tmp_path, "load", "in/", "--into", "./t", "--format", "csv", *flags)
    assert done.returncode == 0, done.stderr
    (found,) = DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist()
    assert list(found.values()) == row


def test_sql(tmp_path: Path, stage: Path) -> None:
    """COPY INTO, then TRUNCATE, then COPY INTO again; a bad statement is exit code 2."""
    copy = "COPY INTO 'lake/t' FROM 'in/' FILE_FORMAT = (TYPE = CSV PARSE_HEADER = TRUE)"
    assert json.loads(calque(tmp_path, "sql", copy, "--json").stdout)["rows_loaded"] == 3
    assert calque(tmp_path, "sql", "TRUNCATE TABLE 'lake/t'").returncode == 0
    assert json.loads(calque(tmp_path, "sql", copy, "--json").stdout)["rows_loaded"] == 3
    bad = calque(tmp_path, "sql", "COPY INTO 'lake/t' FROM 'in/' FORSE = TRUE")
    assert bad.returncode == 2
    assert "FORCE" in bad.stderr


def test_watch_loads_what_arrives(tmp_path: Path, stage: Path) -> None:
    """A watch loads new files until it is stopped, and ends well."""
    watch = subprocess.Popen(
        [
            *(sys.executable, "-m", "calque.cli", "load", "in/", "--into", "lake/t"),
            *("--watch", "--every", "0.2s"),
        ],
        cwd=tmp_path,
        env={**os.environ, "CALQUE_LEDGER_URL": str(tmp_path / "ledger.db")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _until(lambda: _loaded(tmp_path) == 2)
        (stage / "c.csv").write_text("id,name\n9,z\n")
        _until(lambda: _loaded(tmp_path) == 3)
    finally:
        watch.send_signal(signal.SIGINT)
        out, err = watch.communicate(timeout=60)
    assert watch.returncode == 0, err
    assert "c.csv" in out


def _loaded(folder: Path) -> int:
    shown = calque(folder, "ledger", "show", "lake/t", "--json")
    return len(json.loads(shown.stdout)) if shown.returncode == 0 else 0


def _until(holds: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():  # type: ignore[operator]
            return
        time.sleep(0.2)
    raise AssertionError("it did not come to hold")


def test_a_stage_without_files(tmp_path: Path, stage: Path) -> None:
    """A missing stage fails; one without matching files warns, and fails where files are asked."""
    missing = calque(tmp_path, "load", "elsewhere/", "--into", "lake/t")
    assert missing.returncode == 1
    assert "elsewhere" in missing.stderr
    nothing = calque(tmp_path, "load", "in/*.parquet", "--into", "lake/t")
    assert nothing.returncode == 0
    assert "warning: no file matches in/*.parquet" in nothing.stderr
    asked = calque(tmp_path, "load", "in/*.parquet", "--into", "lake/t", "--require-files")
    assert asked.returncode == 1
    assert calque(tmp_path, "load", "in/", "--into", "lake/t", "--require-files").returncode == 0


def test_the_dialect_by_flags(tmp_path: Path, stage: Path) -> None:
    """What the files leave open is said by flags, and kept for the next load."""
    (stage / "a.csv").write_text("name;city\nanna;paris\n")
    (stage / "b.csv").unlink()
    open_question = calque(tmp_path, "load", "in/", "--into", "lake/t")
    assert open_question.returncode == 2
    assert "--header or --no-header" in open_question.stderr
    assert not (tmp_path / "lake").exists()
    said = calque(tmp_path, "load", "in/", "--into", "lake/t", "--header")
    assert said.returncode == 0, said.stderr
    assert "delimiter ';', quote \", with a header, utf-8" in said.stderr
    (stage / "c.json").write_text('{"name": "cleo", "city": "oslo"}\n')
    other = calque(tmp_path, "load", "in/c.json", "--into", "lake/u", "--header")
    assert other.returncode == 2
    assert "JSON by its name" in other.stderr
    (stage / "c.json").unlink()
    (stage / "b.csv").write_text("name;city\nben;rome\n")
    again = calque(tmp_path, "load", "in/", "--into", "lake/t", "--json")
    assert json.loads(again.stdout)["rows_loaded"] == 1


def test_a_european_file_in_one_command(tmp_path: Path, stage: Path) -> None:
    """Schema, decimal comma, thousands and dates are said on the command line."""
    (stage / "a.csv").write_text("tag;betrag\n31/12/2026;1.234,50\n")
    (stage / "b.csv").unlink()
    options = ["decimal_point=,", "thousands_separator=.", "date_format=dd/mm/yyyy"]
    done = calque(
        tmp_path,
        *("load", "in/", "--into", "lake/t", "--format", "csv"),
        *(part for one in options for part in ("-o", one)),
        *("--schema", "tag DATE, betrag DECIMAL(10, 2)"),
    )
    assert done.returncode == 0, done.stderr
    wrong = calque(tmp_path, "load", "in/", "--into", "lake/u", "--schema", "tag NONSENSE")
    assert wrong.returncode == 2
    assert "--schema" in wrong.stderr
