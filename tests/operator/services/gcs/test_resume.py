"""A copy that was killed goes on in another process."""

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from calque.errors import CheckpointInvalid, ConditionNotMatch
from calque.operator import Checkpoint, Operator
from calque.values import MIB
from tests.servers.gcs_fake import GcsFake

DATA = b"fedcba9876543210" * (4 * MIB // 16)

CHILD = """
import os, signal, sys
from calque.operator import Operator
endpoint, path, steps, condition = sys.argv[1:5]
near = Operator.from_uri("gs://near", endpoint=endpoint, anonymous=True)
far = Operator.from_uri("gs://far", endpoint=endpoint, anonymous=True)
copier = near.copier("x", "y", into=far, chunk=1 << 20, if_not_exists=condition == "new")
for number in range(int(steps) + 1):
    with open(path, "w") as file:
        file.write(copier.checkpoint().to_json())
    next(copier, None)
os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_copy(fake: GcsFake, path: Path, steps: int, condition: str = "any") -> Checkpoint:
    """The checkpoint before the last step that a killed process took."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD, fake.endpoint, str(path), str(steps), condition],
        check=False,
        timeout=60,
    )
    assert child.returncode == -9
    return Checkpoint.from_json(path.read_text())


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_killed_at_a_step_and_resumed(
    near: Operator, far: Operator, fake: GcsFake, tmp_path: Path, steps: int
) -> None:
    """What was rewritten is not rewritten again; after the commit it reports completed."""
    near.write("x", DATA)
    checkpoint = kill_copy(fake, tmp_path / "c.json", steps, "new")
    done_already = steps == 3
    assert far.exists("y") == done_already
    fake.world.journal.clear()
    made = near.resume(checkpoint, into=far).run()
    assert far.read("y") == DATA
    assert made.etag == far.stat("y").etag
    assert fake.world.journal.count("rewrite") == (1 if done_already else 4 - steps)


def test_another_writer_meanwhile(
    near: Operator, far: Operator, fake: GcsFake, tmp_path: Path
) -> None:
    """A resumed if_not_exists does not take another's object for its own."""
    near.write("x", DATA)
    checkpoint = kill_copy(fake, tmp_path / "c.json", 1, "new")
    near.copy("x", "y", into=far, if_not_exists=True)
    with pytest.raises(ConditionNotMatch):
        near.resume(checkpoint, into=far).run()


def test_a_source_that_was_replaced(
    near: Operator, far: Operator, fake: GcsFake, tmp_path: Path
) -> None:
    """The checkpoint names bytes that are gone."""
    near.write("x", DATA)
    checkpoint = kill_copy(fake, tmp_path / "c.json", 1)
    near.write("x", DATA)
    with pytest.raises(CheckpointInvalid):
        near.resume(checkpoint, into=far)
    assert not far.exists("y")


def test_a_checkpoint_holds_no_secret(fake: GcsFake, tmp_path: Path) -> None:
    """Neither a bearer token nor a key; the rewrite token is server state."""
    token = fake.issue_token()
    fake.require_token = True
    near = Operator.from_uri("gs://near", endpoint=fake.endpoint, token=token)
    far = Operator.from_uri("gs://far", endpoint=fake.endpoint, token=token)
    near.write("x", DATA)
    copier = near.copier("x", "y", into=far, chunk=MIB)
    next(copier)
    text = copier.checkpoint().to_json()
    assert token not in text
    assert "Bearer" not in text
    copier.abort()


def test_the_address_of_a_session_is_in_no_message() -> None:
    """Who has it may write to the object: neither errors nor their notes tell it."""
    away = Operator.from_uri("memory://")
    away.write("from", os.urandom(9 * MIB))
    with GcsFake() as fake:
        fake.make_bucket("landing")
        into = Operator.from_uri("gs://landing", endpoint=fake.endpoint, anonymous=True)
        copier = away.copier("from", "to", into=into, stream=True, stream_parts=True, chunk=MIB)
        next(copier)
        checkpoint = copier.pause()
        (token,) = fake.routes.uploads.sessions
        assert token in checkpoint.to_json()
        fake.routes.uploads.sessions.clear()
        with pytest.raises(CheckpointInvalid) as told:
            away.resume(checkpoint, into=into)
        assert token not in "".join(traceback.format_exception(told.value))
