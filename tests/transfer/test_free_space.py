"""Room at a local target: told before it is used up; and a disk that does fill stops the run.

On a real file system of 2 MiB, which is mounted in a namespace of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.transfer.conftest import MakeTree

KIB = 1024
MOUNT = 'mount -t tmpfs -o size=2m none "$DISK" || exit 99; '
FILL = MOUNT + '"$@"; code=$?; find "$DISK" -type f -printf "%P %s\\n" > "$FOUND"; exit $code'


def _can_mount() -> bool:
    try:
        probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "none", "/mnt"]
        return subprocess.run(probe, capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not _can_mount(), reason="no file system may be mounted here")


class Disk:
    """A folder that is a small file system to the commands that are run on it."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder = folder / "disk"
        self.folder.mkdir()
        self.found = folder / "found.txt"
        self._environment = {
            **os.environ,
            "DISK": str(self.folder),
            "FOUND": str(self.found),
            "XDG_STATE_HOME": str(state),
        }

    def run(self, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
        """A command of calque; ``before`` is done on the disk first."""
        script = FILL.replace('"$@"', f'{before} "$@"', 1)
        command = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-m", "calque.cli"]
        return subprocess.run(
            [*command, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    @property
    def files(self) -> dict[str, int]:
        """What lay on the disk when the command had ended."""
        lines = (line.rpartition(" ") for line in self.found.read_text().splitlines())
        return {name: int(size) for name, _, size in lines}


@pytest.fixture
def disk(tmp_path: Path, state: Path) -> Disk:
    return Disk(tmp_path, state)


def test_what_does_not_fit_is_refused_before_a_byte_is_written(
    make_tree: MakeTree, disk: Disk
) -> None:
    """Ten files of 300 KiB, each of which would fit: none is begun, and both numbers are told."""
    source = make_tree("source", {f"{n}": os.urandom(300 * KIB) for n in range(10)})
    done = disk.run("cp", "-r", f"{source}/", f"{disk.folder}/new/folder/")
    assert done.returncode == 1
    assert f"needs {3000 * KIB}" in done.stderr
    assert "--no-space-check" in done.stderr
    assert disk.files == {}


def test_a_disk_that_fills_up_stops_the_run_cleanly(make_tree: MakeTree, disk: Disk) -> None:
    """Without the check: whole files that were told, no half one, and no other error."""
    source = make_tree("source", {f"{n}": os.urandom(300 * KIB) for n in range(10)})
    arguments = ("--no-space-check", "--concurrent", "1", "--fsync", "each", "--json")
    done = disk.run("cp", "-r", f"{source}/", f"{disk.folder}/", *arguments)
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    assert [row["error"] for row in report["problems"]] == ["ResourceExhausted"]
    assert report["error"]
    assert not report["stopped"]
    assert report["totals"]["copied"]["objects"] == len(disk.files) > 0
    assert set(disk.files.values()) == {300 * KIB}


def test_what_is_replaced_makes_room_and_holes_need_none(make_tree: MakeTree, disk: Disk) -> None:
    """A new file for an old one, and a file that is nearly nothing but a hole: both fit."""
    source = make_tree("source", {"a": os.urandom(1200 * KIB), "sparse": b"x"})
    with open(source / "sparse", "r+b") as file:
        file.truncate(64 << 20)
    before = f'head -c 1100k /dev/zero > "{disk.folder}/a";'
    done = disk.run("cp", "-r", f"{source}/", f"{disk.folder}/", "--dry-run", before=before)
    assert done.returncode == 0, done.stderr
    assert "2 would be copied" in done.stderr


def test_files_of_the_same_file_system_are_not_held_against_it(
    make_tree: MakeTree, disk: Disk
) -> None:
    """They are renamed, or share their blocks: nobody can know, so nothing is refused."""
    folder = disk.folder
    before = f'mkdir "{folder}/a"; head -c 1500k /dev/urandom > "{folder}/a/x";'
    done = disk.run("mv", "-r", f"{folder}/a/", f"{folder}/b/", before=before)
    assert done.returncode == 0, done.stderr
    assert disk.files == {"b/x": 1500 * KIB}
