"""Files to objects and back: times, modes, owners, content types, empty folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import calque
from calque.operator import Operator
from calque.values.file_attributes import USER_KEY, FileAttributes

MIB = 1024 * 1024
MOMENT = 1_600_000_000_123_456_789


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Small and large files with times and modes of their own."""
    root = tmp_path / "tree"
    for number, (name, size, mode) in enumerate(
        [
            ("a.csv", 10, 0o640),
            ("bin/run", 300, 0o755),
            ("empty", 0, 0o600),
            ("ünï/cödé.json", 5, 0o644),
            ("large.bin", 9 * MIB, 0o444),
        ]
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
        path.chmod(mode)
        os.utime(path, ns=(MOMENT + number, MOMENT + number))
    return root


def told(root: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path.relative_to(root)): (
            path.stat().st_mtime_ns,
            path.stat().st_mode & 0o7777,
            path.read_bytes(),
        )
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("service", ["s3", "memory", "fs"])
def test_round_trip(
    tree: Path, tmp_path: Path, request: pytest.FixtureRequest, service: str
) -> None:
    """There and back the trees are equal: bytes, times to the nanosecond, modes, empty folders."""
    (tree / "hollow" / "deep").mkdir(parents=True)
    if service == "fs":
        middle = Operator.from_uri(tmp_path / "middle")
    elif service == "memory":
        middle = Operator.from_uri(f"memory://attributes-{tmp_path.name}")
    else:
        middle = request.getfixturevalue("s3")
    up = calque.copy_tree(f"{tree}/", middle, folders=True)
    assert up.ok, up.problems
    down = calque.copy_tree(middle, tmp_path / "back", modes=True)
    assert down.ok, down.problems
    assert told(tmp_path / "back") == told(tree)
    if service != "memory":
        assert (tmp_path / "back" / "hollow" / "deep").is_dir()


def test_modes_only_when_asked_for(tree: Path, tmp_path: Path) -> None:
    """An object's mode is not given to a file unasked: whoever wrote it may be a stranger."""
    middle = Operator.from_uri(f"memory://modes-{tmp_path.name}")
    calque.copy_tree(f"{tree}/", middle)
    calque.copy_tree(middle, tmp_path / "back")
    assert (tmp_path / "back" / "bin" / "run").stat().st_mode & 0o111 == 0
    assert (tmp_path / "back" / "bin" / "run").stat().st_mtime_ns == MOMENT + 1


def test_owners_only_when_asked_for(tree: Path, s3: Operator) -> None:
    """Ids are kept with ``owner`` alone."""
    calque.copy_tree(f"{tree}/", s3)
    kept = FileAttributes.of_user(s3.stat("a.csv").user)
    assert kept == FileAttributes(mtime=MOMENT, mode=0o640)
    calque.copy_tree(f"{tree}/", s3, owner=True, compare="always")
    for name in ("a.csv", "large.bin"):
        kept = FileAttributes.of_user(s3.stat(name).user)
        assert (kept.uid, kept.gid) == (os.getuid(), os.getgid())


def test_bits_of_other_users_are_left_out(tmp_path: Path) -> None:
    """A hostile object cannot make a program that runs as its owner."""
    middle = Operator.from_uri(f"memory://bits-{tmp_path.name}")
    middle.write("evil", b"x", user={USER_KEY: "mode=6755 mtime=5"})
    assert calque.copy_tree(middle, tmp_path / "back", modes=True).ok
    assert (tmp_path / "back" / "evil").stat().st_mode & 0o7777 == 0o755


def test_content_types(tree: Path, s3: Operator) -> None:
    """By name, large ones too; what is not known stays unset; what is asked for goes first."""
    calque.copy_tree(f"{tree}/", s3)
    assert s3.stat("a.csv").content_type == "text/csv"
    assert s3.stat("ünï/cödé.json").content_type == "application/json"
    assert s3.stat("bin/run").content_type != "text/csv"
    calque.copy_tree(f"{tree}/", s3, content_type="text/x-own", compare="always")
    assert s3.stat("a.csv").content_type == "text/x-own"
    assert s3.stat("large.bin").content_type == "text/x-own"


def test_second_run_copies_nothing(tree: Path, tmp_path: Path, s3: Operator) -> None:
    """Files that got their times back are known on the next run."""
    calque.copy_tree(f"{tree}/", s3)
    calque.copy_tree(s3, tmp_path / "back")
    again = calque.copy_tree(s3, tmp_path / "back")
    assert again.totals.of("copied").objects == 0, again.totals
