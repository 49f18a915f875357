"""The command itself: help, version, exit codes, errors."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from calque._version import __version__
from calque.cli.main import COMMANDS
from tests.command import run_command_text


def calque(*arguments: str, **options: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "calque.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)  # type: ignore[call-overload,no-any-return]


def test_version() -> None:
    """``--version`` prints name and version."""
    assert calque("--version").stdout == f"calque {__version__}\n"


def test_help_lists_every_command_with_its_line() -> None:
    """The help teaches: what it is, every command, examples."""
    said = calque("--help").stdout
    for name, summary in COMMANDS.items():
        assert name in said
        assert summary.split(":")[0].split(".")[0][:30] in said
    assert "Examples" in said


def test_every_command_has_help_with_an_example() -> None:
    """``calque X --help`` shows a line that can be typed."""
    for name in COMMANDS:
        done = run_command_text(name, "--help")
        assert done.returncode == 0, (name, done.stderr)
        assert "...}" not in done.stdout, name
        assert f"calque {name}" in done.stdout, name


def test_wrong_usage_is_exit_2() -> None:
    """An unknown command or option is wrong usage."""
    assert calque("nonsense").returncode == 2
    assert calque("doctor", "--nonsense").returncode == 2
    told = calque("load", "in/", "--json")
    assert told.returncode == 2
    assert json.loads(told.stdout)["error"]["kind"] == "WrongUsage"
    assert "--into" in told.stderr


def test_a_slip_of_the_fingers_is_understood() -> None:
    """A command that is nearly one is named."""
    told = calque("sycn", "a", "b")
    assert told.returncode == 2
    assert "Did you mean 'sync'?" in told.stderr


def test_a_wrong_configuration_is_named() -> None:
    """The doctor says which file is wrong and goes on with the rest."""
    done = calque("doctor", "--config", "nowhere.toml", "--json")
    findings = {item["name"]: item for item in json.loads(done.stdout)}
    assert not findings["configuration"]["ok"]
    assert "nowhere.toml" in findings["configuration"]["found"]


def test_doctor_names_what_is_there() -> None:
    """Python, Spark, the JVM and every extra are looked at; all of them are here in the tests."""
    findings = {item["name"]: item for item in json.loads(calque("doctor", "--json").stdout)}
    assert findings["java"]["ok"]
    assert findings["spark"]["found"]
    assert {"extra s3", "extra gcs", "extra azure", "extra store", "extra delta"} <= set(findings)


@pytest.mark.parametrize(("width", "shown"), [(200, "│ sync │"), (80, "\nkind     sync\n")])
def test_a_narrow_terminal_shows_rows_below_each_other(
    tmp_path: Path, width: int, shown: str
) -> None:
    """Nothing is folded to a few letters: where there is no room for a table there is none."""
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "a").write_text("1")
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "COLUMNS": str(width)}
    run_command_text("sync", "from/", "to/", cwd=tmp_path, env=environment)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "calque.cli", "jobs", "ls"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=theirs) as process:
        os.close(theirs)
        told = b""
        try:
            while more := os.read(ours, 10_000):
                told += more
        except OSError:
            pass  # the other end was closed: that is how a terminal ends
    os.close(ours)
    assert process.returncode == 0
    assert shown in told.decode().replace("\r\n", "\n")
