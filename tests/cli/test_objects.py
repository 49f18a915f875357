"""``calque mv``, ``ls``, ``stat``, ``cat``, ``rm`` and ``sweep`` on real files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from calque.cli.flags.quantities import parse_duration, parse_size
from calque.errors import ConfigInvalid
from tests.cli.conftest import Calque

LEFT = f".calque-{'a' * 24}-b.tmp"


@pytest.fixture
def tree(folder: Path) -> Path:
    """Some files."""
    for name, content in {"a-": b"1", "a/b": b"22", "a/c/d": b"333", "z": b"4444"}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def test_ls_shows_one_level(calque: Calque, tree: Path) -> None:
    """Names of the working directory in key order; folders end in a slash."""
    assert calque("ls").stdout.splitlines() == ["a-", "a/", "z"]
    assert calque("ls", "a").stdout.splitlines() == ["b", "c/"]
    assert calque("ls", f"{tree}/a/").stdout.splitlines() == ["b", "c/"]


def test_ls_recursive(calque: Calque, tree: Path) -> None:
    """Every object below; sizes and times with --long; start and limit."""
    assert calque("ls", "-r").stdout.splitlines() == ["a-", "a/b", "a/c/d", "z"]
    assert calque("ls", "-r", "a").stdout.splitlines() == ["b", "c/d"]
    started = calque("ls", "-r", "--start-after", "a/b", "--limit", "1").stdout
    assert started.splitlines() == ["a/c/d"]
    long = calque("ls", "-rl").stdout.splitlines()
    assert long[1].split()[:2] == ["2", "B"]


def test_ls_json_is_one_document(calque: Calque, tree: Path) -> None:
    """Valid JSON with a location for each entry, also when there is none."""
    found = json.loads(calque("ls", "-r", "--json").stdout)
    assert found[0]["location"] == f"file://{tree}/a-"
    assert [entry["size"] for entry in found] == [1, 2, 3, 4]
    (tree / "empty").mkdir()
    assert json.loads(calque("ls", "empty", "--json").stdout) == []


def test_ls_of_a_file_and_of_nothing(calque: Calque, tree: Path) -> None:
    """A file is itself; an empty folder is empty; what is not there is an error."""
    assert calque("ls", "z").stdout.splitlines() == ["z"]
    (tree / "empty").mkdir()
    assert calque("ls", "empty").stdout == ""
    for missing in ("nope", "nope/"):
        done = calque("ls", missing)
        assert done.returncode == 1
        assert "does not exist" in done.stderr


def test_odd_names_cannot_trick_a_terminal(calque: Calque, folder: Path) -> None:
    """Control characters and bytes that are no UTF-8 are shown escaped, a name a line."""
    (folder / "new\nline\x1b[31m").write_text("")
    (folder / os.fsdecode(b"bytes\xff")).write_text("")
    (folder / "plain é 😀").write_text("")
    shown = calque("ls").stdout.splitlines()
    assert shown == ["bytes\\udcff", "new\\nline\\x1b[31m", "plain é 😀"]
    found = json.loads(calque("ls", "--json").stdout)
    assert found[0]["path"].endswith("bytes\udcff")
    assert found[1]["path"].endswith("new\nline\x1b[31m")


def test_stat(calque: Calque, tree: Path) -> None:
    """What is known, for people and for programs."""
    known = json.loads(calque("stat", "a/b", "--json").stdout)
    assert known["size"] == 2
    assert known["location"] == f"file://{tree}/a/b"
    assert "size" in calque("stat", "a/b").stdout
    assert calque("stat", "nope").returncode == 1
    assert json.loads(calque("stat", "a", "--json").stdout)["is_dir"]


def test_cat(calque: Calque, tree: Path) -> None:
    """Exactly the bytes, or a range of them."""
    (tree / "bin").write_bytes(bytes(range(256)))
    command = [sys.executable, "-m", "calque.cli", "cat", "bin"]
    assert subprocess.run(command, cwd=tree, capture_output=True).stdout == bytes(range(256))
    assert calque("cat", "a/c/d", "--offset", "1", "--length", "1").stdout == "3"
    assert calque("cat", "a").returncode == 1


def test_cat_into_a_closed_pipe(tree: Path) -> None:
    """``| head`` ends it quietly."""
    (tree / "big").write_bytes(b"x" * 5_000_000)
    line = f"{sys.executable} -m calque.cli cat big | head -c 3"
    done = subprocess.run(line, shell=True, cwd=tree, capture_output=True, text=True)
    assert done.stdout == "xxx"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "line", ["cp - new <&-", "cp a - >&-", "cat a >&-", "ls >&-"], ids=lambda line: line[:4]
)
def test_a_stream_that_is_closed(folder: Path, environment: dict[str, str], line: str) -> None:
    """An error of the system and exit code 1, not a traceback; nothing is made of no bytes."""
    (folder / "a").write_bytes(b"x" * 100_000)
    done = subprocess.run(
        f"exec {sys.executable} -m calque.cli {line}",
        shell=True,
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=150,
    )
    assert done.returncode == 1
    assert "Bad file descriptor" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "new").exists()


@pytest.mark.parametrize("arguments", [("stat", "a"), ("ls", "--json"), ("cat", "a")], ids=str)
def test_an_output_that_is_full(
    folder: Path, environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    """A message and exit code 1, not a traceback, however late the system tells it."""
    (folder / "a").write_bytes(b"x" * 100_000)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "calque.cli", *arguments],
            cwd=folder,
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=150,
        )
    assert done.returncode == 1
    assert done.stderr.strip() == "error: No space left on device"


def test_rm(calque: Calque, tree: Path) -> None:
    """Deletes what is named, says what is not there, and goes on."""
    done = calque("rm", "a-", "nope", "z", "--json")
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert report["deleted"] == ["a-", "z"]
    assert list(report["failed"]) == ["nope"]
    assert calque("rm", "nope").returncode == 1
    assert calque("rm", "-f", "nope").returncode == 0
    assert calque("rm", "a").returncode == 1
    assert (tree / "a" / "b").exists()
    assert calque("rm", "-r", "a", "--dry-run").returncode == 0
    assert (tree / "a" / "b").exists()
    assert calque("rm", "-r", "a", "--exclude", "c/").returncode == 0
    assert sorted(each.name for each in tree.rglob("*") if each.is_file()) == ["d"]


def test_mv_renames(calque: Calque, tree: Path) -> None:
    """Within a file system a move is a rename: the same inode, also into a folder."""
    inode = os.stat(tree / "z").st_ino
    report = json.loads(calque("mv", "z", "a/", "--json").stdout)
    assert report["route"] == "renamed"
    assert os.stat(tree / "a" / "z").st_ino == inode
    assert not (tree / "z").exists()


def test_mv_conditions(calque: Calque, tree: Path) -> None:
    """A taken target with --if-not-exists, itself, a folder, nothing: refused, nothing lost."""
    assert calque("mv", "z", "a-", "--if-not-exists").returncode == 1
    assert calque("mv", "z", "z").returncode == 1
    assert calque("mv", "a", "b").returncode == 1
    assert calque("mv", "nope", "b").returncode == 1
    assert (tree / "z").read_bytes() == b"4444"
    assert (tree / "a-").read_bytes() == b"1"


def test_mv_to_another_file_system(calque: Calque, tree: Path) -> None:
    """Where no rename can, it is copied, then deleted."""
    if os.stat("/dev/shm").st_dev == os.stat(tree).st_dev:
        pytest.skip("there is only one file system here")
    target = Path("/dev/shm") / f"calque-test-{os.getpid()}"
    try:
        report = json.loads(calque("mv", "z", target, "--json").stdout)
        assert report["route"] == "locally"
        assert target.read_bytes() == b"4444"
        assert not (tree / "z").exists()
    finally:
        target.unlink(missing_ok=True)


def test_mv_of_a_link_moves_what_it_shows(calque: Calque, tree: Path) -> None:
    """A symlink is copied as the file it leads to, then removed; the file stays."""
    (tree / "link").symlink_to("z")
    assert calque("mv", "link", "moved").returncode == 0
    assert (tree / "moved").read_bytes() == b"4444"
    assert not (tree / "moved").is_symlink()
    assert not (tree / "link").is_symlink()
    assert (tree / "z").read_bytes() == b"4444"


def test_sweep_leaves_the_young(calque: Calque, tree: Path) -> None:
    """Only what is old enough goes, and only what bears the marker."""
    (tree / "a" / LEFT).write_text("half")
    assert json.loads(calque("sweep", ".", "--json").stdout) == []
    old = time.time() - 2 * 86400
    os.utime(tree / "a" / LEFT, (old, old))
    os.utime(tree / "z", (old, old))
    dry = calque("sweep", ".", "--dry-run")
    assert "found" in dry.stdout
    assert (tree / "a" / LEFT).exists()
    (swept,) = json.loads(calque("sweep", ".", "--json").stdout)
    assert swept["location"] == f"file://{tree}/a/b"
    assert not (tree / "a" / LEFT).exists()
    assert (tree / "z").exists()
    assert "0 leftovers removed" in calque("sweep", ".").stderr


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("0", 0),
        ("4096", 4096),
        ("8MiB", 8 << 20),
        ("8m", 8 << 20),
        ("1.5K", 1536),
        ("2 GB", 2 << 30),
    ],
)
def test_sizes(text: str, bytes_: int) -> None:
    """Sizes as people type them."""
    assert parse_size(text) == bytes_


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5h", 5400), ("1d", 86400), ("2w", 1209600)]
)
def test_durations(text: str, seconds: int) -> None:
    """Durations as people type them."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "x", "-1", "1q", "1 2", "1e3", "∞"])
def test_no_quantities(text: str) -> None:
    """Anything else is wrong usage."""
    with pytest.raises(ConfigInvalid):
        parse_size(text)
    with pytest.raises(ConfigInvalid):
        parse_duration(text)


def test_what_is_wrong_is_told_with_what_to_do(calque: Calque, folder: Path) -> None:
    """A folder for one object, a link to a file of this machine, a tree that would be deleted."""
    (folder / "tree").mkdir()
    (folder / "tree" / "a").write_text("1")
    for arguments in (("cp", "tree/", "x"), ("mv", "tree/", "x"), ("rm", "tree/")):
        done = calque(*arguments)
        assert done.returncode == 1
        assert "take a whole tree with -r" in done.stderr, arguments
    refused = calque("presign", "tree/a")
    assert refused.returncode == 1
    assert "has no signed URLs" in refused.stderr
    assert calque("rm", "-r", "tree/", "--dry-run").stdout == "- a\n"
