"""The real command, in a folder and with a state folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from calque.cli.main import run
from tests.command import run_command_text

Done = subprocess.CompletedProcess[str]
Calque = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working directory."""
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of the command: its state lies beside its working directory."""
    return {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def calque(folder: Path, environment: dict[str, str]) -> Calque:
    """Run the command and wait for it."""

    def run(*arguments: object) -> Done:
        return run_command_text(*arguments, cwd=folder, env=environment)

    return run


@pytest.fixture
def calque_here(
    folder: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Calque:
    """Run the command in this process, which saves the start of another."""
    monkeypatch.chdir(folder)

    def run_here(*arguments: object) -> Done:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        words = [str(one) for one in arguments]
        monkeypatch.setattr(sys, "argv", ["calque", *words])
        code: object = 0
        capsys.readouterr()
        try:
            run()
        except SystemExit as stop:
            code = stop.code
        told = capsys.readouterr()
        return Done(words, int(code or 0) if isinstance(code, int | None) else 1, *told)

    return run_here


Spawn = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def spawn(folder: Path, environment: dict[str, str]) -> Spawn:
    """Start the command and go on."""

    def start(*arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "calque.cli", *map(str, arguments)],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start
