"""A file copy: exact, atomic, pinned, durable; the ways the bytes move all agree."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import ConditionNotMatch, IsSameFile, NotFound, Unsupported
from calque.operator import Operator
from calque.operator.services.fs import extents
from tests.operator.recorder import Hook
from tests.operator.services.fs.conftest import names

CHUNK = 1000
SIZE = 3 * CHUNK + 17


@pytest.fixture
def data(op: Operator) -> bytes:
    """The bytes of the file ``from``, in four chunks."""
    content = os.urandom(SIZE)
    op.write("from", content)
    return content


def test_steps_are_chunks(op: Operator, data: bytes) -> None:
    """Each chunk is a step; the sum is the size; the target appears with the end only."""
    copier = op.copier("from", "to", chunk=CHUNK)
    steps = []
    for step in copier:
        steps.append(step)
        assert not op.exists("to")
    assert steps == [CHUNK, CHUNK, CHUNK, 17]
    assert op.read("to") == data
    assert copier.metadata == op.stat("to")


def test_the_mode_is_kept(op: Operator, data: bytes, folder: Path) -> None:
    """Permission bits go along, also over an old target; set-user-id never does."""
    os.chmod(folder / "from", 0o4751)
    op.copy("from", "new")
    op.write("old", b"old")
    op.copy("from", "old")
    assert os.stat(folder / "new").st_mode & 0o7777 == 0o751
    assert os.stat(folder / "old").st_mode & 0o7777 == 0o751


def test_a_temporary_file_is_private(op: Operator, data: bytes, folder: Path) -> None:
    """While it is copied nobody else can read it, whatever mode the source has."""
    os.chmod(folder / "from", 0o644)
    with op.copier("from", "to", chunk=CHUNK) as copier:
        next(copier)
        (hidden,) = (name for name in names(folder) if name.startswith(".calque-"))
        assert os.stat(folder / hidden).st_mode & 0o777 == 0o600


def test_a_written_file_keeps_the_mode_of_the_one_it_replaces(op: Operator, folder: Path) -> None:
    """A file that was made private stays private when it is written again."""
    op.write("x", b"1")
    os.chmod(folder / "x", 0o600)
    op.write("x", b"2")
    assert os.stat(folder / "x").st_mode & 0o777 == 0o600


def test_real_bytes_are_copied(op: Operator, data: bytes, folder: Path) -> None:
    """Never a hard link: writing into the source later does not change the copy."""
    op.copy("from", "to")
    assert os.stat(folder / "to").st_ino != os.stat(folder / "from").st_ino
    with open(folder / "from", "r+b") as file:
        file.write(b"changed")
    assert op.read("to") == data


@pytest.mark.parametrize(
    "spell",
    [
        lambda root: "from",
        lambda root: os.link(root / "from", root / "hard") or "hard",
        lambda root: os.symlink("from", root / "soft") or "soft",
        lambda root: os.symlink(".", root / "here") or "here/from",
        lambda root: "./from",
        lambda root: ".//from",
    ],
)
def test_a_copy_to_itself_is_refused(
    op: Operator, data: bytes, folder: Path, spell: Callable[[Path], str]
) -> None:
    """IsSameFile however the file is spelled, and it is unharmed."""
    path = spell(folder)
    before = names(folder)
    with pytest.raises(IsSameFile):
        op.copy("from", path)
    with pytest.raises(IsSameFile):
        op.copy(path, "from", if_not_exists=True)
    assert op.read("from") == data
    assert names(folder) == before


def test_the_same_file_from_another_root(data: bytes, op: Operator, folder: Path) -> None:
    """Two operators that see one file do not copy it over itself."""
    above = Operator.from_uri(str(folder.parent))
    with pytest.raises(IsSameFile):
        op.copy("from", f"{folder.name}/from", into=above)


def test_between_roots(data: bytes, op: Operator, tmp_path: Path) -> None:
    """Another root of the same machine is reached without the bytes passing through us."""
    other = Operator.from_uri(str(tmp_path / "other"))
    copier = op.copier("from", "deep/to", into=other)
    copier.run()
    assert other.read("deep/to") == data
    assert copier.route == "server-side"


def test_other_file_systems(data: bytes, op: Operator) -> None:
    """Between two file systems the kernel has no short way; the bytes are the same."""
    if os.stat("/dev/shm").st_dev == os.stat(op.location("")[7:]).st_dev:
        pytest.skip("there is only one file system here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        other = Operator.from_uri(folder)
        op.copy("from", "to", into=other, chunk=CHUNK)
        assert other.read("to") == data
        other.copy("to", "back", into=op, chunk=CHUNK)
        assert op.read("back") == data


def test_target_created_midway(op: Operator, data: bytes, folder: Path) -> None:
    """if_not_exists is decided at the commit: who came first keeps the name."""
    copier = op.copier("from", "to", if_not_exists=True, chunk=CHUNK)
    next(copier)
    op.write("to", b"theirs")
    with pytest.raises(ConditionNotMatch):
        copier.run()
    assert op.read("to") == b"theirs"
    assert names(folder) == ["from", "to"]


def test_if_match_is_not_pretended(op: Operator, data: bytes, folder: Path) -> None:
    """A file system cannot compare and replace at once: Unsupported before anything is written."""
    op.write("to", b"old")
    pin = op.stat("to").pin
    with pytest.raises(Unsupported):
        op.copy("from", "to", if_match=pin)
    with pytest.raises(Unsupported):
        op.write("to", b"new", if_match=pin)
    assert op.read("to") == b"old"
    assert names(folder) == ["from", "to"]


CHANGES: dict[str, tuple[Callable[[Path], object], type[Exception]]] = {
    "appended": (lambda path: path.open("ab").write(b"more"), ConditionNotMatch),
    "overwritten": (lambda path: path.write_bytes(os.urandom(SIZE)), ConditionNotMatch),
    "truncated": (lambda path: os.truncate(path, 10), ConditionNotMatch),
    "emptied": (lambda path: os.truncate(path, 0), ConditionNotMatch),
    "replaced": (lambda path: _replace(path), ConditionNotMatch),
    "touched back": (lambda path: _sneak(path), ConditionNotMatch),
    "deleted": (lambda path: path.unlink(), NotFound),
    "moved away": (lambda path: path.rename(path.with_name("away")), NotFound),
    "became a folder": (lambda path: (path.unlink(), path.mkdir()), IsADirectoryError),
}


def _replace(path: Path) -> None:
    fresh = path.with_name("fresh")
    fresh.write_bytes(os.urandom(SIZE))
    fresh.rename(path)


def _sneak(path: Path) -> None:
    """Change bytes and set size and mtime back as they were; ctime tells."""
    before = os.stat(path)
    with open(path, "r+b") as file:
        file.seek(SIZE - 1)
        file.write(b"!")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_the_source_is_pinned(
    op: Operator, data: bytes, folder: Path, change: str, steps: int
) -> None:
    """Changed midway, at whatever moment: the right error, no target, no temporary file."""
    op.write("to", b"old")
    copier = op.copier("from", "to", chunk=CHUNK)
    for _ in range(steps):
        next(copier)
    act, error = CHANGES[change]
    act(folder / "from")
    with pytest.raises(error):
        copier.run()
    assert op.read("to") == b"old"
    assert not [name for name in names(folder) if name.startswith(".calque-")]


def test_a_change_is_noticed_at_the_next_step(op: Operator, data: bytes, folder: Path) -> None:
    """Nobody copies terabytes of a file that has changed long ago."""
    with op.copier("from", "to", chunk=CHUNK) as copier:
        next(copier)
        (folder / "from").write_bytes(os.urandom(SIZE))
        with pytest.raises(ConditionNotMatch, match="changed"):
            next(copier)


def test_changed_during_the_last_request(op: Operator, data: bytes, folder: Path) -> None:
    """Even between the last chunk and the commit."""
    hook = Hook("copy_commit", lambda number: (folder / "from").write_bytes(b"x" * SIZE))
    with pytest.raises(ConditionNotMatch, match="changed"):
        op.layer(hook).copy("from", "to")
    assert names(folder) == ["from"]


@settings(max_examples=60, deadline=None)
@given(
    stretches=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=6),
    chunk=st.integers(1000, 100_000),
)
def test_holes_stay_holes(stretches: list[tuple[int, int]], chunk: int) -> None:
    """Any pattern of data and holes is copied byte for byte, and takes no more room."""
    with tempfile.TemporaryDirectory() as root:
        _sparse(f"{root}/from", stretches)
        op = Operator.from_uri(root)
        steps = list(op.copier("from", "to", chunk=chunk))
        assert sum(steps) == os.stat(f"{root}/from").st_size
        assert op.read("to") == op.read("from")
        assert os.stat(f"{root}/to").st_blocks <= os.stat(f"{root}/from").st_blocks + 8


def _sparse(path: str, stretches: list[tuple[int, int]]) -> None:
    """Stretches of (pages of hole, pages of data), the last hole at the end of the file."""
    with open(path, "wb") as file:
        for hole, written in stretches:
            file.seek(hole * 4096, os.SEEK_CUR)
            file.write(os.urandom(written * 4096))
        file.truncate(file.tell() + 3 * 4096)


def test_a_huge_hole_costs_nothing(op: Operator, folder: Path) -> None:
    """A file of 1 TiB that holds 4 KiB is copied at once, in a handful of steps."""
    size = 1 << 40
    with open(folder / "from", "wb") as file:
        file.seek(size // 2)
        file.write(b"x" * 4096)
        file.truncate(size)
    steps = list(op.copier("from", "to"))
    assert sum(steps) == size
    assert len(steps) < 10
    assert op.read("to", offset=size // 2, length=4096) == b"x" * 4096
    assert os.stat(folder / "to").st_blocks < 100


@settings(max_examples=80, deadline=None)
@given(
    size=st.integers(0, 5000),
    offset=st.integers(0, 5000),
    length=st.integers(0, 5000),
    closed=st.integers(0, 2),
)
def test_every_way_moves_the_same_bytes(size: int, offset: int, length: int, closed: int) -> None:
    """copy_file_range, sendfile and read/write each move exactly the stretch that exists."""
    content = os.urandom(size)
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        source.write(content)
        source.flush()
        mover = extents.Mover(source.fileno(), target.fileno())
        del mover._ways[:closed]
        moved = mover.move(offset, length)
        expected = content[offset : offset + length]
        assert moved == len(expected)
        assert os.pread(target.fileno(), 10_000, offset) == expected


def test_closed_ways_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that refuses one way is asked for the next; another error is raised as it is."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EXDEV, "not between these")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    monkeypatch.setattr(os, "sendfile", refuse)
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        source.write(b"bytes")
        source.flush()
        assert extents.Mover(source.fileno(), target.fileno()).move(0, 100) == 5
        assert os.pread(target.fileno(), 100, 0) == b"bytes"

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "copy_file_range", full)
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        with pytest.raises(OSError) as caught:
            extents.Mover(source.fileno(), target.fileno()).move(0, 100)
        assert caught.value.errno == errno.ENOSPC


def test_files_that_hide_their_size_are_not_copied_as_empty(op: Operator) -> None:
    """Files of /proc say they have no bytes and have some: an error, never an empty copy."""
    whole = Operator.from_uri("fs:///")
    with pytest.raises(ConditionNotMatch):
        whole.copy("proc/self/status", "status", into=op)
    assert not op.exists("status")
