"""The log: lines for people, JSON for collectors, with times."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from calque.cli.logs import JsonLines
from tests.cli.conftest import Calque

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def test_everything_on_standard_error_is_json(calque: Calque, folder: Path) -> None:
    """What is said, what is logged with its traceback, and the error; each line with its time."""
    said = calque("--log", "json", "init")
    assert said.returncode == 0
    (told,) = [json.loads(line) for line in said.stderr.splitlines()]
    assert (told["level"], told["logger"]) == ("INFO", "calque.cli")
    assert "calque.toml" in told["message"]
    failed = calque("-v", "--log", "json", "init")
    assert failed.returncode == 1
    records = [json.loads(line) for line in failed.stderr.splitlines()]
    assert all(TIME.fullmatch(each["time"]) for each in records)
    first = next(each for each in records if each["level"] == "ERROR")
    assert first["message"].startswith("error:")
    assert any("AlreadyExists" in each.get("traceback", "") for each in records)


def test_results_stay_as_they_are(calque: Calque) -> None:
    """Standard output is the result, whatever the log is."""
    told = json.loads(calque("--log", "json", "config", "--json").stdout)
    assert told["file"] is None or told["settings"]


def test_text_has_the_time_in_front(calque: Calque, folder: Path) -> None:
    """As lines: the time, the level, who says it; what is said to people stays as it was."""
    (folder / "calque.toml").write_text("")
    done = calque("-v", "--log", "text", "init")
    (line,) = [each for each in done.stderr.splitlines() if "DEBUG calque" in each]
    assert TIME.match(line)
    assert "error: calque.toml is there already" in done.stderr
    assert not TIME.search(calque("init").stderr)


def test_ctrl_c_is_no_error_of_a_library() -> None:
    """A pool that Ctrl-C struck as it closed a connection logs that; people see no traceback."""
    script = """
import logging
from calque.cli.logs import set_up_logs
set_up_logs(False, None)
for kind in (KeyboardInterrupt, ValueError):
    try:
        raise kind("told")
    except BaseException:
        logging.getLogger("sqlalchemy.pool").exception("closing")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "KeyboardInterrupt" not in done.stderr
    assert "ValueError: told" in done.stderr


def test_an_unknown_form_is_wrong_usage(calque: Calque) -> None:
    """The forms that there are, are named."""
    done = calque("--log", "xml", "doctor")
    assert done.returncode == 2
    assert "json" in done.stderr


def test_a_record_is_one_line_whatever_is_in_it() -> None:
    """Line ends, control characters and halves of surrogates of a name cannot forge a record."""
    record = logging.LogRecord(
        "calque.x",
        logging.WARNING,
        "f",
        1,
        "%s",
        ('a\n{"level": "ERROR"}\x1b[2J\udc80\u2028',),
        None,
    )
    line = JsonLines().format(record)
    assert len(line.splitlines()) == 1
    assert line.isascii()
    told = json.loads(line)
    assert (told["level"], told["message"][:2]) == ("WARNING", "a\n")
    assert abs(datetime.fromisoformat(told["time"]).timestamp() - record.created) < 0.01
