"""The command ``calque`` in a process of its own, without the second that its imports take.

For tests in which starting the interpreter is not the point. The process has its own folder,
environment, streams and exit code, as one from a shell has; its first bytes of Python are a fork.
"""

from __future__ import annotations

import atexit
import io
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path

from calque.cli.main import run
from tests.forks import FORKS

PATIENCE = 280.0


def run_command(
    *arguments: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> subprocess.CompletedProcess[bytes]:
    """Run the command and wait for it; what it printed, in bytes."""
    words = [str(each) for each in arguments]
    with tempfile.TemporaryDirectory(prefix="calque-command-") as folder:
        streams = Path(folder)
        (streams / "stdin").write_bytes(stdin)
        process = FORKS.Process(
            target=_main, args=(words, str(cwd or Path.cwd()), dict(env or os.environ), folder)
        )
        process.start()
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise AssertionError(f"calque {' '.join(words)} did not end")
        # The fork server may lose a code; whoever ended by itself has written it down.
        told = streams / "code"
        code = int(told.read_text()) if told.exists() else process.exitcode
        out, err = ((streams / name).read_bytes() for name in ("stdout", "stderr"))
    return subprocess.CompletedProcess(["calque", *words], code, out, err)


def run_command_text(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The same, as text; bytes that are none are kept as Python keeps them in names."""
    done = run_command(*arguments, cwd=cwd, env=env)
    out, err = (each.decode(errors="surrogateescape") for each in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def _main(words: list[str], cwd: str, env: dict[str, str], folder: str) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    _open_streams(Path(folder))
    sys.argv = ["calque", *words]
    code = _exit_code()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    (Path(folder) / "code").write_text(str(code))


def _open_streams(folder: Path) -> None:
    """Standard streams on files, as a shell's redirections open them."""
    for number, name, mode in (
        (0, "stdin", os.O_RDONLY),
        (1, "stdout", os.O_WRONLY | os.O_CREAT),
        (2, "stderr", os.O_WRONLY | os.O_CREAT),
    ):
        opened = os.open(folder / name, mode)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb", closefd=False))
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False))
    sys.stderr = io.TextIOWrapper(
        os.fdopen(2, "wb", closefd=False), errors="backslashreplace", line_buffering=True
    )


def _exit_code() -> int:
    try:
        run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
