"""``calque cp``: one object, with every promise kept when it is stopped."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from calque.operator import Operator
from calque.transfer.jobs.checkpoint_file import CheckpointFile
from tests.cli.conftest import Calque, Spawn
from tests.frozen import wake_with
from tests.servers.gcs_fake import GcsFake

MIB = 1024 * 1024


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_file(calque: Calque, folder: Path) -> None:
    """Copied exactly; what was done is said on standard error."""
    (folder / "a").write_bytes(b"content")
    done = calque("cp", "a", "deep/b")
    assert done.returncode == 0
    assert (folder / "deep" / "b").read_bytes() == b"content"
    assert done.stdout == ""
    assert "copied 7 B locally" in done.stderr


@pytest.mark.parametrize("spelling", ["dir", "dir/", "./dir", "{folder}/dir", "fs://{folder}/dir/"])
def test_into_a_folder(calque: Calque, folder: Path, spelling: str) -> None:
    """A folder as the target keeps the source's name, however it is spelled."""
    (folder / "a").write_bytes(b"x")
    (folder / "dir").mkdir()
    assert calque("cp", "a", spelling.format(folder=folder)).returncode == 0
    assert (folder / "dir" / "a").read_bytes() == b"x"


def test_json(calque: Calque, folder: Path) -> None:
    """The report as data."""
    (folder / "a").write_bytes(b"x" * 1000)
    report = json.loads(calque("cp", "a", "b", "--json", "--verify").stdout)
    assert report["bytes"] == 1000
    assert report["target"] == f"file://{folder}/b"
    assert report["route"] == "locally"
    assert report["verified"] == "bytes"
    assert report["resumed_from"] == 0


def test_if_not_exists(calque: Calque, folder: Path) -> None:
    """An existing target is kept and the command fails."""
    (folder / "a").write_bytes(b"new")
    (folder / "b").write_bytes(b"old")
    done = calque("cp", "a", "b", "--if-not-exists")
    assert done.returncode == 1
    assert "exists already" in done.stderr
    assert (folder / "b").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("cp", "nope", "b"), 1, "does not exist"),
        (("cp", "a", "a"), 1, "cannot be copied to itself"),
        (("cp", "-r", "nope/", "b"), 1, "does not exist"),
        (("cp", "a", "b", "--dry-run"), 2, "for trees"),
        (("cp", "a"), 2, "a source and a target"),
        (("cp", "dir", "b"), 1, "is a directory"),
        (("cp", "a", "zz://b/c"), 1, "no service for zz://"),
        (("cp", "a", "b", "--chunk", "0"), 1, "at least 1"),
        (("cp", "a", "b", "--chunk", "huge"), 2, "no size"),
        (("cp", "a", "b", "--concurrent", "0"), 1, "at least 1"),
        (("cp", "a", "b", "--timeout", "soon"), 2, "no duration"),
        (("cp", "a", "b", "--if-match", "x"), 1, "if_match"),
        (("cp", "a", "b", "--if-match", "x", "--if-not-exists"), 1, "choose one"),
        (("cp", "", "b"), 1, "empty"),
        (("cp", "a"), 2, "DST"),
    ],
)
def test_wrong_requests(
    calque: Calque, folder: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """Each its own clear message, without a traceback, and nothing written."""
    (folder / "a").write_bytes(b"x")
    (folder / "dir").mkdir()
    done = calque(*arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert names(folder) == ["a", "dir"]


def test_errors_as_json(calque: Calque) -> None:
    """A program gets the kind of the error, what it says and whether to try again."""
    done = calque("cp", "nope", "b", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["kind"] == "NotFound"


def test_names_that_are_no_utf8(calque: Calque, folder: Path) -> None:
    """Any file name that the system allows can be copied and reported."""
    odd = os.fsdecode(b"odd\xff\n\x1b[31m name")
    (folder / odd).write_bytes(b"x")
    done = calque("cp", odd, "copies/", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["target"].startswith("file://")
    assert (folder / "copies" / odd).read_bytes() == b"x"


def test_a_bar_on_a_terminal(folder: Path, environment: dict[str, str]) -> None:
    """On a terminal a bar shows how far it is."""
    (folder / "a").write_bytes(b"x" * 10 * MIB)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "calque.cli", "cp", "a", "b", "--chunk", "64KiB"]
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        pass  # the other end was closed: that is how a terminal ends
    os.close(ours)
    assert process.wait(150) == 0
    assert b"/10.0" in shown
    assert b"copied 10.0 MiB" in shown


class Slow:
    """A copy held midway: a large file in tiny chunks, stopped (SIGSTOP) once it has begun."""

    def __init__(self, spawn: Spawn, folder: Path) -> None:
        self.spawn, self.folder = spawn, folder
        with open(folder / "a", "wb") as file:
            for _ in range(24):
                file.write(os.urandom(MIB))

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Alive, with something already copied, and doing nothing until :meth:`end`."""
        process = self.spawn("cp", "a", "b", "--chunk", "1KiB", *options)
        until = time.monotonic() + 100
        sizes: list[int] = []
        while time.monotonic() < until:
            with suppress(FileNotFoundError):  # it may get its name in this moment
                sizes = [file.stat().st_size for file in self.folder.glob(".calque-*")]
            if sizes and sizes[0] > 100_000:
                process.send_signal(signal.SIGSTOP)
                return process
            assert process.poll() is None, process.stderr and process.stderr.read()
            time.sleep(0.001)
        raise AssertionError("the copy did not begin")

    def end(self, process: subprocess.Popen[str], how: signal.Signals) -> str:
        """Send it a signal, let it go on, and wait; what it said."""
        wake_with(process.pid, how)
        return process.communicate(timeout=150)[1]


@pytest.fixture
def slow(spawn: Spawn, folder: Path) -> Slow:
    return Slow(spawn, folder)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_without_resume_nothing_is_left(
    slow: Slow, folder: Path, tmp_path: Path, how: signal.Signals
) -> None:
    """Ctrl-C, a polite kill, a closed terminal: the old target is there and nothing else."""
    (folder / "b").write_bytes(b"old")
    process = slow.start()
    said = slow.end(process, how)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert names(folder) == ["a", "b"]
    assert (folder / "b").read_bytes() == b"old"
    assert not [each for each in (tmp_path / "state").rglob("*") if each.is_file()]


def test_stopped_with_resume_it_goes_on(
    slow: Slow, folder: Path, calque: Calque, tmp_path: Path
) -> None:
    """Ctrl-C keeps the checkpoint and says how to go on; that command does, and cleans up."""
    process = slow.start("--resume")
    said = slow.end(process, signal.SIGINT)
    assert process.returncode == 130
    assert "go on with: calque cp a b --chunk 1KiB --resume" in said
    assert not (folder / "b").exists()
    again = calque("cp", "a", "b", "--chunk", "1KiB", "--resume", "--json", "--verify")
    report = json.loads(again.stdout)
    assert report["resumed_from"] > 0
    assert report["bytes"] == 24 * MIB
    assert (folder / "b").read_bytes() == (folder / "a").read_bytes()
    assert names(folder) == ["a", "b"]
    kept = tmp_path / "state" / "calque" / "copies"
    assert not list(kept.glob("*.json"))


def test_killed_with_resume_it_goes_on(slow: Slow, folder: Path, calque: Calque) -> None:
    """Even SIGKILL leaves a checkpoint to go on from, and the sweep does not take it at once."""
    process = slow.start("--resume")
    slow.end(process, signal.SIGKILL)
    assert json.loads(calque("sweep", ".", "--json").stdout) == []
    again = calque("cp", "a", "b", "--chunk", "1KiB", "--resume", "--json")
    assert json.loads(again.stdout)["bytes"] == 24 * MIB
    assert (folder / "b").read_bytes() == (folder / "a").read_bytes()
    assert names(folder) == ["a", "b"]


def test_killed_without_resume_a_sweep_clears(slow: Slow, folder: Path, calque: Calque) -> None:
    """The old target survives; what is left is found by its marker and removed."""
    (folder / "b").write_bytes(b"old")
    process = slow.start()
    living = json.loads(calque("sweep", ".", "--older-than", "0s", "--json").stdout)
    assert living == [], "a living copy must not be swept"
    slow.end(process, signal.SIGKILL)
    assert (folder / "b").read_bytes() == b"old"
    (found,) = json.loads(calque("sweep", ".", "--older-than", "0s", "--dry-run", "--json").stdout)
    assert found["outcome"] == "found"
    assert found["location"] == f"file://{folder}/b"
    assert len(names(folder)) == 3
    (swept,) = json.loads(calque("sweep", ".", "--older-than", "0s", "--json").stdout)
    assert swept["outcome"] == "removed"
    assert names(folder) == ["a", "b"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_was_left_is_given_up(
    slow: Slow, folder: Path, calque: Calque, tmp_path: Path, how: signal.Signals
) -> None:
    """With --abort nothing of it is left, here or at the target; then there is nothing to abort."""
    slow.end(slow.start("--resume"), how)
    done = calque("cp", "a", "b", "--abort")
    assert done.returncode == 0, done.stderr
    assert "gave up the copy" in done.stderr
    assert names(folder) == ["a"]
    assert not list((tmp_path / "state" / "calque" / "copies").glob("*.json"))
    again = calque("cp", "a", "b", "--abort")
    assert (again.returncode, "no earlier copy" in again.stderr) == (1, True)
    refused = calque("cp", "-r", ".", "../elsewhere", "--abort")
    assert refused.returncode == 2


def test_a_changed_source_starts_anew(slow: Slow, folder: Path, calque: Calque) -> None:
    """A checkpoint that no longer fits is put aside, with the reason, and the copy is right."""
    process = slow.start("--resume")
    slow.end(process, signal.SIGINT)
    (folder / "a").write_bytes(b"quite different")
    done = calque("cp", "a", "b", "--chunk", "1KiB", "--resume")
    assert done.returncode == 0
    assert "starts anew" in done.stderr
    assert (folder / "b").read_bytes() == b"quite different"
    assert names(folder) == ["a", "b"], "what the old copy left is cleared away"


@pytest.mark.parametrize("changed", [None, b"quite different"])
def test_a_copy_whose_source_is_another_by_now_is_given_up(
    slow: Slow, folder: Path, calque: Calque, changed: bytes | None
) -> None:
    """What it left lies at the target, and needs no source to be removed."""
    slow.end(slow.start("--resume"), signal.SIGKILL)
    (folder / "a").unlink()
    if changed is not None:
        (folder / "a").write_bytes(changed)
    done = calque("cp", "a", "b", "--abort")
    assert done.returncode == 0, done.stderr
    assert names(folder) == ([] if changed is None else ["a"])


def test_a_checkpoint_of_another_copy_makes_no_other_target(
    slow: Slow, folder: Path, calque: Calque, tmp_path: Path
) -> None:
    """Whoever moved it under the name of this one: it is not gone on with, nor cleared away."""
    slow.end(slow.start("--resume"), signal.SIGKILL)
    (folder / "c").write_bytes(b"another")
    ours = CheckpointFile.of(f"file://{folder}/a", f"file://{folder}/b").path
    name = CheckpointFile.of(f"file://{folder}/c", f"file://{folder}/d").path.name
    copies = tmp_path / "state" / "calque" / "copies"
    shutil.copy(copies / ours.name, copies / name)
    left = len(names(folder))
    refused = calque("cp", "c", "d", "--abort")
    assert (refused.returncode, len(names(folder))) == (1, left)
    assert "is of another one" in refused.stderr
    shutil.copy(copies / ours.name, copies / name)
    done = calque("cp", "c", "d", "--resume")
    assert (done.returncode, "starts anew" in done.stderr) == (0, True)
    assert (folder / "d").read_bytes() == b"another"
    assert not (folder / "b").exists()


@pytest.mark.parametrize("suffix", [".lock", ".json", ".new"])
def test_a_link_in_the_state_folder_is_not_followed(
    calque: Calque, folder: Path, tmp_path: Path, suffix: str
) -> None:
    """It could lead to a file that is none of ours: said plainly, and that file is as it was."""
    (folder / "a").write_bytes(b"data")
    (tmp_path / "precious").write_text("precious")
    kept = CheckpointFile.of(f"file://{folder}/a", f"file://{folder}/b").path
    copies = tmp_path / "state" / "calque" / "copies"
    copies.mkdir(parents=True)
    (copies / kept.with_suffix(suffix).name).symlink_to(tmp_path / "precious")
    done = calque("cp", "a", "b", "--resume")
    assert done.returncode == 1
    assert "XDG_STATE_HOME" in done.stderr
    assert (tmp_path / "precious").read_text() == "precious"
    assert names(folder) == ["a"]


def test_a_tampered_checkpoint_starts_anew(
    slow: Slow, folder: Path, calque: Calque, tmp_path: Path
) -> None:
    """Whatever stands in the state folder cannot lead the copy astray."""
    process = slow.start("--resume")
    slow.end(process, signal.SIGINT)
    (kept,) = (tmp_path / "state" / "calque" / "copies").glob("*.json")
    assert kept.stat().st_mode & 0o077 == 0, "nobody else reads it"
    kept.write_text(kept.read_text().replace('"copied": ', '"copied": 9'))
    done = calque("cp", "a", "b", "--resume")
    assert done.returncode == 0, done.stderr
    assert "starts anew" in done.stderr
    assert (folder / "b").read_bytes() == (folder / "a").read_bytes()


@pytest.mark.parametrize("garbage", [b"\xff\xfe\x00", b"", b"[" * 100_000])
def test_garbage_in_the_place_of_a_checkpoint(
    calque: Calque, folder: Path, tmp_path: Path, garbage: bytes
) -> None:
    """No JSON, no text, nothing: said, and copied anew."""
    (folder / "a").write_bytes(b"data")
    kept = CheckpointFile.of(f"file://{folder}/a", f"file://{folder}/b").path.name
    state = tmp_path / "state" / "calque" / "copies"
    state.mkdir(parents=True)
    (state / kept).write_bytes(garbage)
    done = calque("cp", "a", "b", "--resume")
    assert done.returncode == 0, done.stderr
    assert "starts anew" in done.stderr
    assert (folder / "b").read_bytes() == b"data"
    assert not list(state.glob("*.json"))


def test_a_checkpoint_that_cannot_be_written(calque: Calque, folder: Path, tmp_path: Path) -> None:
    """It ends the copy with a message that says what to do; nothing is left."""
    (folder / "a").write_bytes(b"data")
    kept = CheckpointFile.of(f"file://{folder}/a", f"file://{folder}/b").path
    (tmp_path / "state" / "calque" / "copies" / kept.with_suffix(".new").name).mkdir(parents=True)
    done = calque("cp", "a", "b", "--resume")
    assert done.returncode == 1
    assert "XDG_STATE_HOME" in done.stderr
    assert "Traceback" not in done.stderr
    assert names(folder) == ["a"]


def test_one_resumable_copy_at_a_time(slow: Slow, calque: Calque) -> None:
    """The same copy from a second terminal is refused while the first goes on."""
    process = slow.start("--resume")
    done = calque("cp", "a", "b", "--chunk", "1KiB", "--resume")
    assert done.returncode == 1
    assert "another calque" in done.stderr
    assert process.poll() is None
    slow.end(process, signal.SIGINT)


def test_no_state_folder(
    calque: Calque, folder: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """A state folder that cannot be made is said plainly."""
    (tmp_path / "state").write_text("a file")
    (folder / "a").write_bytes(b"x")
    done = calque("cp", "a", "b", "--resume")
    assert done.returncode == 1
    assert "XDG_STATE_HOME" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("cp", "a", "b", "-o", "secret_access_key=hidden"),
        ("cp", "a", "b", "--source-option=endpoint_url=http://me:hidden@h"),
        ("cp", "s3://bucket/key", "b", "--target-option", "secret_access_key=hidden"),
        ("mv", "a", "s3://bucket/key", "--source-option", "secret_access_key=hidden"),
        ("cp", "-r", "./", "b", "-osecret_access_key=hidden"),
        ("check", "./", "b", "-o", "secret_access_key=hidden"),
    ],
)
def test_local_files_take_no_options(
    calque: Calque, folder: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Nobody would look at them, nor refuse a secret: and a note of a copy keeps its command."""
    (folder / "a").write_bytes(b"data")
    done = calque(*words)
    assert done.returncode == 2
    assert "was given to local files" in done.stderr
    assert "hidden" not in done.stderr
    assert names(folder) == ["a"]
    assert not (tmp_path / "state").exists()


def test_checkpoints_are_apart_for_each_pair() -> None:
    """Source and target together name a copy; no two pairs share a file."""
    pairs = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a", "b/"), ("a", "\udcff")]
    assert len({CheckpointFile.of(*pair).path for pair in pairs}) == len(pairs)


def test_a_time_limit(calque: Calque, folder: Path) -> None:
    """A copy that takes longer than it may is given up and leaves nothing."""
    with open(folder / "a", "wb") as file:
        file.write(os.urandom(24 * MIB))
    done = calque("cp", "a", "b", "--chunk", "1KiB", "--timeout", "0.05s")
    assert done.returncode == 1
    assert "longer than" in done.stderr
    assert names(folder) == ["a"]


@pytest.mark.parametrize("size", [5, 9 * 1024 * 1024 + 1], ids=["small", "large"])
def test_resume_through_this_machine(calque: Calque, folder: Path, size: int) -> None:
    """Between two services ``--resume`` is taken at any size, and leaves no checkpoint behind."""
    content = os.urandom(size)
    (folder / "file").write_bytes(content)
    with GcsFake() as fake:
        fake.make_bucket("landing")
        flags = ("-o", f"endpoint={fake.endpoint}", "-o", "anonymous=true", "--json")
        for _ in range(2):
            done = calque("cp", "file", "gs://landing/file", "--resume", *flags)
            assert done.returncode == 0, done.stderr
            assert '"route": "through the client"' in done.stdout
        there = Operator.from_uri("gs://landing", endpoint=fake.endpoint, anonymous=True)
        assert there.read("file") == content
