"""How the process of the command ends: by its own exit code, whatever libraries do at their end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

AT_THE_END = """
import atexit, ctypes, sys, threading, time
from pathlib import Path
from calque.cli import entry

library = ctypes.CDLL(None)  # as one whose threads end the process while it is torn down
getattr(library, "__cxa_atexit")(ctypes.cast(library.abort, ctypes.c_void_p), None, None)
atexit.register(lambda: Path("exit function").touch())
def late():
    time.sleep(0.2)
    Path("thread").touch()
threading.Thread(target=late).start()
sys.argv = ["calque", *sys.argv[1:]]
entry.main()
"""


@pytest.mark.parametrize(("command", "code"), [("--version", 0), ("cat", 2), ("cat nowhere", 1)])
def test_no_library_spoils_the_exit_code(
    folder: Path, environment: dict[str, str], command: str, code: int
) -> None:
    """Threads and exit functions of Python are waited for; what comes after them is left out."""
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END, *command.split()],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["exit function", "thread"]
    assert command != "--version" or done.stdout.startswith("calque ")


def test_the_crash_is_real(folder: Path, environment: dict[str, str]) -> None:
    """Without our end the same process is ended by the library: else nothing would be shown."""
    code = AT_THE_END.replace("entry.main()", "entry.run()")
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    assert done.returncode == -signal.SIGABRT


def test_an_unexpected_error_shows_itself(folder: Path, environment: dict[str, str]) -> None:
    """A bug is a traceback and exit code 1, as of any program."""
    code = "from calque.cli import entry, main; main.app = None; entry.main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_garbage_is_collected_after_the_start(folder: Path, environment: dict[str, str]) -> None:
    """Modules are imported without a look for garbage; who makes more has it collected as ever."""
    code = """
import gc
from calque.cli.entry import START, collect_after_start
usual = gc.get_threshold()
collect_after_start()
before = sum(one["collections"] for one in gc.get_stats())
import calque.loader.loader
assert sum(one["collections"] for one in gc.get_stats()) == before
made = [[] for _ in range(START)]
assert gc.get_threshold() == usual and gc.callbacks == []
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
