"""Notes of copies of one object: what others can see of them, and what is no note."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from calque.errors import NotFound
from calque.transfer.jobs import single_copies
from calque.transfer.jobs.checkpoint_file import CheckpointFile, state_folder
from calque.transfer.jobs.single_copies import CopyNote, find_copy, list_copies, note_copy

SOURCE, TARGET = ("file:///a", "fs:/a"), ("s3://b/a", "s3:b/a")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return state_folder()


def begin(*, resumable: bool) -> CopyNote:
    command = ["cp", "a", "s3://b/", "--resume"]
    return note_copy(SOURCE, TARGET, 100, command=command, resumable=resumable)


def test_a_note_lives_as_long_as_its_copy(state: Path) -> None:
    """Told from the first moment; gone with the end; private."""
    assert list_copies() == []
    note = begin(resumable=False)
    (copy,) = list_copies()
    assert (copy.source, copy.target, copy.done, copy.total) == ("file:///a", "s3://b/a", 0, 100)
    assert copy.state == "RUNNING"
    assert find_copy(copy.copy_id) == copy
    assert {each.stat().st_mode & 0o077 for each in state.iterdir()} == {0}
    note.end(100, keep=False)
    assert list_copies() == []
    assert [*state.iterdir()] == []
    with pytest.raises(NotFound):
        find_copy(copy.copy_id)


def test_a_copy_that_was_left_is_stopped(state: Path) -> None:
    """While its checkpoint is there; without one nobody could go on, and the note goes."""
    checkpoint = CheckpointFile.of(SOURCE[1], TARGET[1]).path
    note = begin(resumable=True)
    checkpoint.write_text("{}")
    note.end(50, keep=True)
    (copy,) = list_copies()
    assert (copy.state, copy.done) == ("STOPPED", 50)
    checkpoint.unlink()
    assert list_copies() == []
    assert [*state.iterdir()] == []


def test_a_copy_is_not_kept_from_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder that cannot be had means no note, and no error."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    note = begin(resumable=False)
    note.tell(1)
    note.end(1, keep=False)
    assert list_copies() == []


@pytest.mark.parametrize(
    "garbage", [b"", b"\xff\x00", b"[]", b"{}", b'{"command": 3}', b"[" * 100_000]
)
def test_garbage_in_the_place_of_a_note(state: Path, garbage: bytes) -> None:
    """It is nobody's copy; nor is a link to somewhere else."""
    state.mkdir(parents=True)
    (state / "x.copy").write_bytes(garbage)
    os.symlink("/etc/passwd", state / "y.copy")
    assert list_copies() == []


@pytest.mark.parametrize(
    "tampered",
    [
        {"started": "yesterday"},
        {"started": float("inf")},
        {"updated": 1e300},
        {"done": None},
        {"total": "many"},
        {"command": [1, "--resume"]},
        {"command": ["rm", "-r", "/"]},
        {"copy_id": "another"},
        {"more": 1},
    ],
)
def test_a_note_that_was_tampered_with_is_none(state: Path, tampered: dict[str, object]) -> None:
    """One odd value keeps nobody from seeing the others, and no command of it is run."""
    checkpoint = CheckpointFile.of(SOURCE[1], TARGET[1]).path
    begin(resumable=True).end(50, keep=True)
    checkpoint.write_text("{}")
    (copy,) = list_copies()
    note = checkpoint.with_suffix(".copy")
    note.write_text(json.dumps({**json.loads(note.read_text()), **tampered}))
    other = begin(resumable=False)
    assert copy.copy_id not in [each.copy_id for each in list_copies()]
    assert len(list_copies()) == 1
    other.end(1, keep=False)


def test_a_note_that_others_may_write_is_none(state: Path) -> None:
    """Its command could be anybody's."""
    note = begin(resumable=False)
    (path,) = state.iterdir()
    path.chmod(0o666)
    assert list_copies() == []
    note.end(1, keep=False)


def test_whoever_holds_a_note_is_not_in_the_way_of_a_copy(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that looks and was stopped meanwhile keeps its lock: there is no note then. One
    that removes it as nobody's takes the new one for no old one. A pipe is not waited for."""
    monkeypatch.setattr(single_copies, "_TAKE_SECONDS", 0.05)
    state.mkdir(parents=True)
    path = CheckpointFile.of(SOURCE[1], TARGET[1]).path.with_suffix(".copy")
    held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    begin(resumable=True).end(1, keep=False)
    path.unlink()
    note = begin(resumable=True)
    assert [copy.state for copy in list_copies()] == ["RUNNING"]
    note.end(1, keep=False)
    os.close(held)
    os.mkfifo(path)
    assert list_copies() == []
    begin(resumable=True).end(1, keep=False)
