"""What the README shows is run here: its Python, and its commands."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}


def test_the_first_screen_has_a_sentence_two_commands_and_ten_lines() -> None:
    """A newcomer sees what it is, how to start it and how it is used without scrolling."""
    head = README.read_text(encoding="utf-8").splitlines()[:45]
    assert any(line.strip() == "make demo" or "make demo " in line for line in head)
    assert any("make test" in line for line in head)
    assert any("import calque" in line for line in head)


@pytest.mark.parametrize("code", [text for kind, text in BLOCKS if kind == "python"])
def test_python_in_the_readme_runs_and_prints_what_it_says(code: str, tmp_path: Path) -> None:
    """Each ``# → x`` in the README is what the line prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == re.findall(r"# → (.*)", code)


@pytest.mark.parametrize("text", [text for kind, text in BLOCKS if kind == "console"])
def test_commands_in_the_readme_run(text: str, tmp_path: Path) -> None:
    """Each ``$ calque …`` line runs, in order, in one folder."""
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.csv").write_text("id,amount\n1,9.50\n2,3.20\n")
    (tmp_path / "big.bin").write_bytes(b"x" * 100_000)
    commands = re.findall(r"^\$ calque (.*)$", text, re.MULTILINE)
    assert commands
    for command in commands:
        words = shlex.split(command.split("   #")[0])
        done = subprocess.run(
            [sys.executable, "-m", "calque.cli", *words],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
