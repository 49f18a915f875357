"""A process that answers over a pipe: printing is no answer, and its end is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.child_process import start_child

TALKER = """
from calque.child_process import open_answers
print("imported", flush=True)
with open_answers() as answers:
    answers.write(b"answer")
"""


def test_what_is_printed_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what it prints at its very start, and not what it prints later."""
    (tmp_path / "sitecustomize.py").write_text("print('hello', flush=True)\n")
    (tmp_path / "talker.py").write_text(TALKER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process, answers = start_child("talker")
    with process, answers:
        assert answers.read() == b"answer"
    assert process.returncode == 0


def test_a_program_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told at once, and no pipe is left open."""
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(FileNotFoundError):
        start_child("talker")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
