"""A copy that was killed goes on in another process, or is swept."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from calque.errors import CheckpointInvalid, ConditionNotMatch, InvalidInput
from calque.operator import Checkpoint, Operator
from calque.operator.service import Leftover
from tests.operator.recorder import Recorder
from tests.operator.services.azblob.conftest import PART, THRESHOLD, Account

DATA = bytes(range(256)) * (THRESHOLD // 256) + b"and a tail"

CHILD = """
import json, os, signal, sys
from calque.operator import Operator
options, path, steps = json.loads(sys.stdin.read()), sys.argv[1], int(sys.argv[2])
op = Operator.from_uri(**options)
copier = op.copier("from", "to", concurrent=1, if_not_exists=True)
for number in range(steps + 1):
    with open(path, "w") as file:
        file.write(copier.checkpoint().to_json())
    if number < steps:
        next(copier, None)
os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_copy(account: Account, path: Path, steps: int) -> Checkpoint:
    """The last checkpoint of a process that was killed after so many steps."""
    options = {
        "uri": f"az://{account.container}",
        "account": account.name,
        "key": account.azurite.keys[account.name],
        "endpoint": account.azurite.endpoint(account.name),
        "threshold": THRESHOLD,
        "part_size": PART,
    }
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(steps)],
        input=json.dumps(options).encode(),
        check=False,
        timeout=60,
    )
    assert child.returncode == -9
    return Checkpoint.from_json(path.read_text())


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_killed_after_a_step_and_resumed(
    op: Operator, account: Account, tmp_path: Path, steps: int
) -> None:
    """Staged blocks are not copied again; after the commit it reports completed."""
    op.write("from", DATA)
    checkpoint = kill_copy(account, tmp_path / "c.json", steps)
    committed = steps == 6
    assert op.exists("to") == committed
    assert bool(list(op.leftovers())) != committed
    seen = Recorder()
    made = op.layer(seen).resume(checkpoint).run()
    assert op.read("to") == DATA
    assert made.size == len(DATA)
    assert seen.count("copy_part") <= max(5 - steps, 0)
    assert list(op.leftovers()) == []


def test_a_small_copy_that_was_committed_reports_completed(op: Operator) -> None:
    """Its own target does not stand in its way; another's does."""
    op.write("from", b"small")
    copier = op.copier("from", "to", if_not_exists=True)
    checkpoint = copier.checkpoint()
    made = copier.run()
    assert op.resume(checkpoint).run().etag == made.etag == op.stat("to").etag
    op.delete("to")
    op.copy("from", "to", if_not_exists=True)
    with pytest.raises(ConditionNotMatch):
        op.resume(checkpoint).run()


def test_killed_and_swept(op: Operator, account: Account, tmp_path: Path) -> None:
    """A sweep finds the blocks by our mark, with their age and size, and removes them."""
    op.write("from", DATA)
    checkpoint = kill_copy(account, tmp_path / "c.json", 2)
    (left,) = op.leftovers()
    assert (left.kind, left.location) == ("uncommitted blocks", op.location("to"))
    assert (left.size or 0) >= 2 * PART
    assert left.started is not None
    assert datetime.now(UTC) - left.started < timedelta(minutes=5)
    op.remove_leftover(left)
    assert list(op.leftovers()) == []
    with pytest.raises(CheckpointInvalid):
        op.resume(checkpoint)


def test_a_sweep_touches_nothing_else(op: Operator, account: Account) -> None:
    """Other tools' blocks, empty blobs and blobs with bytes stay; a foreign leftover is refused."""
    op.write("empty", b"")
    op.write("full", b"x")
    account.client().get_blob_client("staged").stage_block("foreign", b"theirs")
    assert list(op.leftovers()) == []
    with pytest.raises(InvalidInput):
        op.remove_leftover(Leftover("az://x.blob/c/y", "uncommitted blocks", "1", None))
    with pytest.raises(InvalidInput):
        op.remove_leftover(Leftover(op.location("full"), "uncommitted blocks", "1", None))
    assert op.read("full") == b"x"


def test_a_checkpoint_holds_no_secret(op: Operator, account: Account) -> None:
    """Neither key nor signature nor URL."""
    op.write("from", DATA)
    copier = op.copier("from", "to", concurrent=1)
    next(copier)
    text = copier.checkpoint().to_json()
    for secret in (account.azurite.keys[account.name], "sig=", "http://", "SharedKey"):
        assert secret not in text
    copier.abort()


@pytest.mark.parametrize("change", [{"write": "x" * 20}, {"write": None}, {"driver": "rewrite"}])
def test_a_payload_that_is_not_ours(
    op: Operator, account: Account, change: dict[str, object]
) -> None:
    """A checkpoint with a good digest and a false payload is refused."""
    op.write("from", DATA)
    copier = op.copier("from", "to", concurrent=1)
    next(copier)
    checkpoint = copier.pause()
    with pytest.raises(CheckpointInvalid):
        op.resume(replace(checkpoint, payload={**checkpoint.payload, **change}))
