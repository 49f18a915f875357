"""A root folder, an operator on it, and processes of their own."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from calque.operator import Operator

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The root as a folder."""
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture
def op(folder: Path) -> Operator:
    """The root as an operator."""
    return Operator.from_uri(str(folder))


def start(code: str, *arguments: object, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """A Python process running ``code``; it inherits this one's sources."""
    command = [*prefix, sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen[str]) -> str:
    """What a process printed, once it ended well."""
    out, err = process.communicate(timeout=150)
    assert process.returncode == 0, err
    return out


def open_to_all(folder: Path) -> None:
    """Let an unprivileged process reach ``folder``: only adds what is missing on the way to it."""
    for each in (folder, *folder.parents):
        mode = stat.S_IMODE(os.stat(each).st_mode)
        if mode & 0o055 != 0o055:
            os.chmod(each, mode | 0o055)


@pytest.fixture
def own_mounts() -> tuple[str, ...]:
    """A command prefix with mounts of its own; skips where the kernel does not allow them."""
    for prefix in (("unshare", "-m"), ("unshare", "-rm")):
        probe = [*prefix, "mount", "-t", "tmpfs", "none", "/mnt"]
        try:
            if subprocess.run(probe, capture_output=True).returncode == 0:
                return prefix
        except FileNotFoundError:
            break
    pytest.skip("mounts of one's own are not allowed here")


@pytest.fixture
def nobody() -> Callable[[], None]:
    """Makes a child process an ordinary user, whom permissions concern."""

    def become() -> None:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)

    return become


def names(folder: Path) -> list[str]:
    """Everything in a folder, hidden or not, our temporary files included."""
    return sorted(os.listdir(folder))
