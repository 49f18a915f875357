"""Shells complete commands and flags."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from calque.cli.main import COMMANDS, module_of
from tests.command import run_command_text

BIN = str(Path(sys.executable).parent)
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


def offered(shell: str, line: str) -> subprocess.CompletedProcess[str]:
    """What the command answers to a shell that asks with the line up to the cursor."""
    words = line.split(" ")
    asked = {
        "_CALQUE_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    return run_command_text(env={**os.environ, **asked})


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_is_offered_commands_flags_and_values(shell: str) -> None:
    """The top, the flags of a command, a command of a command, and the values of an argument."""
    for line, expected in (
        ("calque hist", "history"),
        ("calque cp --resu", "--resume"),
        ("calque store mkb", "mkbucket"),
        ("calque completion f", "fish"),
    ):
        done = offered(shell, line)
        assert expected in done.stdout, (line, done)
        assert done.stderr == ""
    everything = offered(shell, "calque ").stdout
    assert [name for name in COMMANDS if name not in everything] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed(shell: str) -> None:
    """It asks by the variable that the command answers to; a shell that is there can read it."""
    done = run_command_text("completion", shell)
    assert done.returncode == 0
    assert f"_CALQUE_COMPLETE=complete_{shell}" in done.stdout
    if found := shutil.which(shell):
        read = subprocess.run([found, "-n"], input=done.stdout, text=True, capture_output=True)
        assert (read.returncode, read.stderr) == (0, "")


def test_an_unknown_shell_is_wrong_usage() -> None:
    """The shells that there are, are named."""
    done = run_command_text("completion", "tcsh")
    assert done.returncode == 2
    assert "fish" in done.stderr


def test_bash_completes_for_real() -> None:
    """The script in a real bash: what it puts before the user."""
    script = (
        "source <(calque completion bash) || exit 9\n"
        "COMP_WORDS=(calque sync --dry); COMP_CWORD=2; _calque_completion calque\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.stdout.split() == ["--dry-run"], done.stderr


def test_the_names_of_commands_cost_no_import_of_them() -> None:
    """To offer the names of commands none of them is read; to offer flags only its own is."""
    assert modules_read_for("calque ") == set()
    assert modules_read_for("calque init --f") == {"calque.cli.commands.init"}


def modules_read_for(line: str) -> set[str]:
    """The modules of commands that a completion of this line imports."""
    code = (
        "import sys\nfrom calque.cli.main import run\nsys.argv = ['calque']\n"
        "try: run()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    asked = {"_CALQUE_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True
    )
    assert "calque.cli.main" in done.stderr
    return set(done.stderr.split()) & {module_of(name) for name in COMMANDS}
