"""An unfinished file copy goes on in another process, or says why it cannot."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from calque.errors import CheckpointInvalid, ConditionNotMatch, InvalidInput
from calque.operator import Checkpoint, Leftover, Operator
from calque.operator.layers import Fault, FaultInjection
from tests.operator.services.fs.conftest import finish, names, open_to_all, start

CHUNK = 1000
SIZE = 5 * CHUNK + 17


@pytest.fixture
def data(op: Operator) -> bytes:
    """The bytes of ``from``."""
    content = os.urandom(SIZE)
    op.write("from", content)
    return content


def part_way(op: Operator, steps: int = 2, **options: Any) -> Checkpoint:
    """A copy that was paused after some steps."""
    copier = op.copier("from", "to", chunk=CHUNK, **options)
    for _ in range(steps):
        next(copier)
    return copier.pause()


def test_only_the_rest_is_copied(op: Operator, data: bytes, folder: Path) -> None:
    """The first step reports what was there; chunks before it are not moved again."""
    checkpoint = part_way(op)
    seen = FaultInjection(Fault(verb="none", delay=1))
    again = op.layer(seen).resume(checkpoint.to_json())
    assert list(again) == [2 * CHUNK, CHUNK, CHUNK, CHUNK, 17]
    assert seen.count("copy_chunk") == 4
    assert op.read("to") == data
    assert names(folder) == ["from", "to"]


KILLS = """
import os, sys, traceback
from pathlib import Path
from calque.operator import Operator
from calque.operator.layers import Fault, FaultInjection

def copy(folder, kept, fault):
    copier = Operator.from_uri(folder).layer(FaultInjection(fault)).copier(
        "from", "to", chunk=1000, if_not_exists=True
    )
    for _ in copier:
        kept.write_text(copier.checkpoint().to_json())

def resume(folder, kept):
    Operator.from_uri(folder).resume(kept.read_text()).run()

def in_a_process(work, *arguments):
    child = os.fork()
    if not child:
        try:
            work(*arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

root, when = sys.argv[1:]
for number in range(1, 8):
    folder, kept = f"{root}/r{number}", Path(f"{root}/k{number}")
    print(in_a_process(copy, folder, kept, Fault(nth=number, when=when, kill=True)))
    print(in_a_process(resume, folder, kept) if kept.exists() else "not begun")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_request_then_resumed_or_swept(tmp_path: Path, when: str) -> None:
    """SIGKILL around each request; another process finishes it, or a sweep clears it."""
    content = os.urandom(2 * CHUNK + 1)
    folders = [tmp_path / f"r{number}" for number in range(1, 8)]
    for folder in folders:
        Operator.from_uri(folder).write("from", content)
    told = finish(start(KILLS, tmp_path, when)).split("\n")
    killed, resumed = told[0:14:2], told[1:14:2]
    assert killed == ["-9"] * 6 + ["0"], "stat, begin, three chunks, commit; then without a fault"
    assert {"0", "not begun"} == set(resumed)
    for folder, outcome in zip(folders, resumed, strict=True):
        op = Operator.from_uri(folder)
        if outcome == "0":
            assert op.read("to") == content
            assert names(folder) == ["from", "to"]
        else:
            assert not op.exists("to")
            for left in op.leftovers():
                op.remove_leftover(left)
            assert names(folder) == ["from"]


def test_after_commit_it_reports_completed(op: Operator, data: bytes) -> None:
    """Killed after the rename and before the checkpoint was written: it is done, and says so."""
    checkpoint = part_way(op)
    op.resume(checkpoint).run()
    again = op.resume(checkpoint)
    assert sum(again) == SIZE
    assert again.metadata == op.stat("to")


def test_a_target_of_somebody_else_is_not_taken_for_ours(op: Operator, data: bytes) -> None:
    """The temporary file gone and another file at the target: refused."""
    checkpoint = part_way(op)
    for left in op.leftovers():
        op.remove_leftover(left)
    op.write("to", data)
    with pytest.raises(CheckpointInvalid, match="aborted or swept"):
        op.resume(checkpoint)
    assert op.read("to") == data


def test_after_abort_it_is_refused(op: Operator, data: bytes, folder: Path) -> None:
    """An aborted copy has nothing to go on with."""
    copier = op.copier("from", "to", chunk=CHUNK)
    next(copier)
    checkpoint = copier.checkpoint()
    copier.abort()
    with pytest.raises(CheckpointInvalid):
        op.resume(checkpoint)
    assert names(folder) == ["from"]


def test_a_changed_source_is_refused(op: Operator, data: bytes) -> None:
    """Other bytes under the same name are not mixed in."""
    checkpoint = part_way(op)
    op.write("from", os.urandom(SIZE))
    with pytest.raises(CheckpointInvalid, match="changed"):
        op.resume(checkpoint)


@pytest.mark.parametrize("damage", ["bytes", "shorter", "another file"])
def test_a_damaged_temporary_file_is_refused(
    op: Operator, data: bytes, folder: Path, damage: str
) -> None:
    """What the checkpoint says is compared with what the disk holds, and the disk wins."""
    checkpoint = part_way(op)
    hidden = folder / checkpoint.payload["temporary"]
    if damage == "bytes":
        with open(hidden, "r+b") as file:
            file.seek(2 * CHUNK - 5)
            file.write(b"!!")
    elif damage == "shorter":
        os.truncate(hidden, CHUNK)
    else:
        content = hidden.read_bytes()
        hidden.rename(folder / "aside")
        hidden.write_bytes(content)
    with pytest.raises(CheckpointInvalid):
        op.resume(checkpoint).run()
    assert not op.exists("to")


@pytest.mark.parametrize(
    "edit",
    [
        {"temporary": "../../etc/passwd"},
        {"temporary": f".calque-{'0' * 24}-/../../x.tmp"},
        {"temporary": "from"},
        {"temporary": 7},
        {"copied": -1},
        {"copied": SIZE + 1},
        {"copied": "2000"},
        {"inode": None},
        {"born": "yesterday"},
        {"born": 12},
        {"driver": "multipart"},
    ],
)
def test_a_forged_payload_is_refused(
    op: Operator, data: bytes, folder: Path, edit: dict[str, Any]
) -> None:
    """Even with a digest that fits, nothing outside the marker's names is ever opened."""
    checkpoint = part_way(op)
    body = json.loads(checkpoint.to_json())
    forged = Checkpoint._read({**body, "payload": {**body["payload"], **edit}})
    with pytest.raises(CheckpointInvalid):
        op.resume(forged).run()
    assert op.read("from") == data
    assert not op.exists("to")


def test_two_processes_cannot_resume_one_copy(op: Operator, data: bytes) -> None:
    """Whoever holds the temporary file works on it alone, also against a sweep."""
    checkpoint = part_way(op)
    (left,) = op.leftovers()
    first = op.resume(checkpoint)
    next(first)
    with pytest.raises(ConditionNotMatch, match="in use"):
        op.resume(checkpoint).run()
    assert list(op.leftovers()) == []
    with pytest.raises(ConditionNotMatch, match="in use"):
        op.remove_leftover(left)
    first.run()
    assert op.read("to") == data


def test_only_our_own_files_are_swept(op: Operator, data: bytes) -> None:
    """A leftover made up by hand cannot delete a user's file."""
    made_up = Leftover(op.location("from"), "temporary file", "from", None)
    with pytest.raises(InvalidInput, match="not touched"):
        op.remove_leftover(made_up)
    assert op.read("from") == data


SWEPT = """
import os, sys
from calque.errors import PermissionDenied
from calque.operator import Operator
op = Operator.from_uri(sys.argv[1])
if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)
found = op.leftovers()
try:
    for left in found:
        print(left.location)
except PermissionDenied as error:
    print("denied", error.message)
"""


def test_a_folder_that_may_not_be_read_does_not_hide_the_rest(op: Operator, folder: Path) -> None:
    """Everything else is found first; then the error comes out."""
    for name in ("a", "b", "c"):
        (folder / name).mkdir(mode=0o755)
        (folder / name / f".calque-{'0' * 24}-x.tmp").write_text("half")
    open_to_all(folder)
    os.chmod(folder / "b", 0)
    *found, last = finish(start(SWEPT, folder)).splitlines()
    os.chmod(folder / "b", 0o755)
    assert sorted(found) == [op.location("a/x"), op.location("c/x")]
    assert last.startswith(f"denied '{folder}/b'")


def test_a_file_that_may_not_be_read_does_not_hide_the_rest(op: Operator, folder: Path) -> None:
    """A temporary file of somebody else's is told at the end, too."""
    for name in ("a", "b", "c"):
        (folder / name).mkdir(mode=0o755)
        (folder / name / f".calque-{'0' * 24}-x.tmp").write_text("half")
    open_to_all(folder)
    os.chmod(folder / "b" / f".calque-{'0' * 24}-x.tmp", 0)
    *found, last = finish(start(SWEPT, folder)).splitlines()
    assert sorted(found) == [op.location("a/x"), op.location("c/x")]
    assert last.startswith(f"denied '{folder}/b")


def test_leftovers_of_a_prefix(op: Operator) -> None:
    """Only those below the prefix are found."""
    op.write("from", b"x" * 2000)
    for target in ("a/to", "a/b/to", "ab/to"):
        copier = op.copier("from", target, chunk=CHUNK)
        next(copier)
        copier.pause()
    found = sorted(left.location for left in op.leftovers("a/"))
    assert found == [op.location("a/b/to"), op.location("a/to")]
    assert len(list(op.leftovers("a"))) == 3
    assert list(op.leftovers("nothing/")) == []
