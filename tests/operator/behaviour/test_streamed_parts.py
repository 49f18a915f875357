"""Copies through the client in parts, into every service that keeps parts of a write."""

import gc
import os
import warnings
from collections.abc import Callable

import pytest

from calque.errors import CheckpointInvalid, ConditionNotMatch
from calque.operator import Checkpoint, Copier, Operator
from calque.operator.service import PartedWriting
from tests.operator.behaviour.test_killed import KillAt, Killed, sweep
from tests.operator.recorder import Recorder

MIB = 1024 * 1024
PART = 5 * MIB
SIZE = 2 * PART + 17


@pytest.fixture(autouse=True)
def _keeps_parts(op: Operator) -> None:
    if not isinstance(op.service, PartedWriting):
        pytest.skip("it keeps no parts of a write")


@pytest.fixture(scope="module")
def data() -> bytes:
    return os.urandom(SIZE)


@pytest.fixture
def away(data: bytes) -> Operator:
    """A service that no other can copy from by itself."""
    operator = Operator.from_uri("memory://")
    operator.write("from", data, content_type="text/x-odd", user={"colour": "red"})
    return operator


def stream(away: Operator, op: Operator, *, if_not_exists: bool = False) -> Copier:
    return away.copier(
        "from",
        "to",
        into=op,
        stream=True,
        stream_parts=True,
        chunk=PART,
        concurrent=1,
        if_not_exists=if_not_exists,
    )


def put_parts(seen: Recorder) -> int:
    return sum(verb == "write_part" for verb in seen.verbs)


def test_what_is_held_is_not_sent_again(away: Operator, op: Operator, data: bytes) -> None:
    """A paused copy goes on behind its parts; there is no target before its end, no rest after."""
    copier = stream(away, op)
    assert next(copier) == PART
    checkpoint = copier.pause().to_json()
    assert not op.exists("to")
    seen = Recorder()
    resumed = away.resume(checkpoint, into=op.layer(seen))
    assert resumed.route == "through the client"
    steps = list(resumed)
    assert steps[0] >= PART
    assert sum(steps) == SIZE
    assert put_parts(seen) < 3
    assert op.read("to") == data
    found = op.stat("to")
    if op.capability.user_metadata:
        assert (found.content_type, dict(found.user)) == ("text/x-odd", {"colour": "red"})
    assert list(op.leftovers()) == []
    assert sum(away.resume(resumed.checkpoint(), into=op)) == SIZE


def test_an_aborted_copy_leaves_nothing(away: Operator, op: Operator) -> None:
    """Neither target nor parts."""
    copier = stream(away, op)
    # All parts, so that none is in flight, which could land after the abort.
    assert sum(next(copier) for _ in range(3)) == SIZE
    copier.abort()
    assert not op.exists("to")
    assert list(op.leftovers()) == []


def test_a_source_that_is_replaced_midway_is_not_mixed(away: Operator, op: Operator) -> None:
    """The copy fails: no target, no parts."""
    copier = stream(away, op)
    next(copier)
    away.write("from", os.urandom(SIZE))
    with pytest.raises(ConditionNotMatch):
        copier.run()
    assert not op.exists("to")
    assert list(op.leftovers()) == []


def test_a_changed_source_starts_anew(away: Operator, op: Operator) -> None:
    """The checkpoint is refused; what it kept is found by a sweep, if the service keeps it."""
    copier = stream(away, op)
    next(copier)
    checkpoint = copier.pause()
    fresh = os.urandom(SIZE)
    away.write("from", fresh)
    with pytest.raises(CheckpointInvalid):
        away.resume(checkpoint, into=op)
    stream(away, op).run()
    assert op.read("to") == fresh
    sweep(op)
    assert list(op.leftovers()) == []


def test_a_condition_is_kept_by_the_commit(away: Operator, op: Operator, data: bytes) -> None:
    """An object that appears while the parts are sent is not overwritten."""
    copier = stream(away, op, if_not_exists=True)
    next(copier)
    op.write("to", b"another's")
    with pytest.raises(ConditionNotMatch):
        copier.run()
    assert op.read("to") == b"another's"
    op.delete("to")
    stream(away, op, if_not_exists=True).run()
    assert op.read("to") == data
    sweep(op)


@pytest.mark.parametrize(
    ("answered", "old"), [(False, None), (True, b"old")], ids=["unanswered", "answered"]
)
def test_killed_at_every_request(
    away: Operator, op: Operator, data: bytes, answered: bool, old: bytes | None
) -> None:
    """Resumed or copied anew the target is right; until then it is the old one or the whole new
    one; after a sweep nothing is left."""
    number, finished = 0, False
    while not finished:
        op.delete("to")
        if old is not None:
            op.write("to", old)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            finished, checkpoint = _copy_and_die(away, op, KillAt(number, answered=answered))
            gc.collect()
        assert (op.read("to") if op.exists("to") else None) in (old, data)
        if not finished:
            _go_on(away, op, checkpoint)
        assert op.read("to") == data
        sweep(op)
        assert list(op.leftovers()) == []
        number += 1
    assert number > 3


def _copy_and_die(away: Operator, op: Operator, kill: KillAt) -> tuple[bool, Checkpoint | None]:
    checkpoint = None
    try:
        copier = stream(away, op.layer(kill))
        checkpoint = copier.checkpoint()
        for _ in copier:
            checkpoint = copier.checkpoint()
    except Killed:
        return False, checkpoint
    return True, checkpoint


def _go_on(away: Operator, op: Operator, checkpoint: Checkpoint | None) -> None:
    try:
        if checkpoint is not None:
            assert sum(away.resume(checkpoint, into=op)) == SIZE
            return
    except CheckpointInvalid:
        pass
    stream(away, op).run()


def test_a_small_one_is_made_anew(away: Operator, op: Operator, need: Callable[..., None]) -> None:
    """What fits one request has a checkpoint too, which says that nothing of it is kept."""
    away.write("from", b"small")
    copier = stream(away, op)
    checkpoint = copier.pause()
    with pytest.raises(CheckpointInvalid, match="too little"):
        away.resume(checkpoint, into=op)
    assert stream(away, op).run().size == 5
