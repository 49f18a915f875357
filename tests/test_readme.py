"""What the README shows is run here: its Python, and its commands."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}


def test_the_first_screen_has_a_sentence_two_commands_and_ten_lines() -> None:
    """A newcomer sees what it is, how to get it, start it and use it without scrolling."""
    head = README.read_text(encoding="utf-8").splitlines()[:30]
    assert head[2].startswith("**One engine")
    for command in ("pip install ", "make demo ", "make test "):
        assert [line for line in head if line.startswith(command)]
    (code,) = [text for kind, text in BLOCKS if kind == "python"]
    assert "\n".join(head).find(code.splitlines()[-1]) > 0
    assert len([line for line in code.splitlines() if line]) == 10


def test_what_is_said_to_be_tested_is_what_tests_run_on() -> None:
    """Python and system of the table are those of the package's own description."""
    project = tomllib.loads((README.parent / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    rows = re.findall(r"^\| (\w+) \| ([^|]+) \|", README.read_text(encoding="utf-8"), re.MULTILINE)
    tested = dict(rows)
    (python,) = re.findall(r"CPython ([\d.]+)", tested["Python"])
    assert project["requires-python"] == f">={python}"
    assert f"Programming Language :: Python :: {python}" in project["classifiers"]
    (system,) = [one for one in project["classifiers"] if one.startswith("Operating System")]
    assert tested["system"].startswith(system.rpartition(" ")[2])


@pytest.mark.parametrize("extra", ["all", "s3", "delta"])
def test_extras_that_are_named_can_be_installed(extra: str) -> None:
    """What ``pip install`` is told in the README is an extra of the package."""
    project = tomllib.loads((README.parent / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    assert f".[{extra}]" in README.read_text(encoding="utf-8")
    assert extra in project["optional-dependencies"]


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
    """Each line as it stands, in order, in one folder that is empty before."""
    commands = re.findall(r"^\$ (.*)$", text, re.MULTILINE)
    assert commands
    here = environment(tmp_path)
    here["PATH"] = f"{Path(sys.executable).parent}:{here['PATH']}"
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=here,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
