"""Durable resume, on every service that has it."""

import json
from collections.abc import Callable

import pytest

from calque.errors import Aborted, CheckpointInvalid, Unsupported
from calque.operator import Checkpoint, Operator
from tests.operator.behaviour.case import Case, content
from tests.operator.recorder import Recorder


@pytest.fixture(autouse=True)
def _can_copy(need: Callable[..., None]) -> None:
    need("copy")


@pytest.fixture
def data(op: Operator, case: Case, need: Callable[..., None]) -> bytes:
    """A source large enough for several parts."""
    need("copy_resumable")
    if case.threshold is None:
        pytest.skip("every copy is one request")
    data = content(case.large)
    op.write("from", data)
    return data


def part_way(op: Operator, case: Case) -> Checkpoint:
    copier = op.copier("from", "to", concurrent=1, chunk=case.part)
    next(copier)
    return copier.pause()


def test_a_service_without_resume_says_so(op: Operator, case: Case) -> None:
    """Unsupported, where copies do not survive their process."""
    if op.capability.copy_resumable:
        pytest.skip("it can resume")
    op.write("from", content(case.small))
    with op.copier("from", "to") as copier, pytest.raises(Unsupported):
        copier.checkpoint()


def test_a_paused_copy_goes_on(op: Operator, case: Case, data: bytes) -> None:
    """The rest is copied; steps still sum up to the whole; the first tells what was done."""
    checkpoint = part_way(op, case)
    assert not op.exists("to")
    copier = op.resume(checkpoint.to_json())
    steps = list(copier)
    assert steps[0] >= case.part
    assert sum(steps) == len(data)
    assert op.read("to") == data
    assert copier.metadata.size == len(data)
    assert list(op.leftovers()) == []


def test_a_checkpoint_may_be_taken_after_any_step(op: Operator, case: Case, data: bytes) -> None:
    """Each of them resumes to the same target, the last one too: it reports completed."""
    copier = op.copier("from", "to", concurrent=1, chunk=case.part)
    steps = 0
    for copied in copier:
        steps += copied
        assert Checkpoint.from_json(copier.checkpoint().to_json()).target_path == "to"
    finished = copier.checkpoint()
    assert steps == len(data)
    assert sum(op.resume(finished)) == len(data)
    assert op.read("to") == data
    assert list(op.leftovers()) == []


def test_a_finished_copy_reports_completed(op: Operator, case: Case, data: bytes) -> None:
    """Nothing is copied again; a target that was replaced or removed since is refused."""
    copier = op.copier("from", "to", if_not_exists=op.capability.copy_with_if_not_exists)
    copier.run()
    checkpoint = copier.checkpoint()
    seen = Recorder()
    again = op.layer(seen).resume(checkpoint)
    assert sum(again) == len(data)
    assert again.metadata.pin == copier.metadata.pin
    assert set(seen.verbs) <= {"stat"}
    op.write("to", b"another")
    with pytest.raises(CheckpointInvalid):
        op.resume(checkpoint)
    op.delete("to")
    with pytest.raises(CheckpointInvalid):
        op.resume(checkpoint)


def test_a_paused_copier_is_over(op: Operator, case: Case, data: bytes) -> None:
    """It neither goes on nor aborts what another process may go on with."""
    copier = op.copier("from", "to", concurrent=1, chunk=case.part)
    next(copier)
    checkpoint = copier.pause()
    with pytest.raises(Aborted):
        next(copier)
    copier.abort()
    assert sum(op.resume(checkpoint)) == len(data)


def test_an_aborted_copy_cannot_be_resumed(op: Operator, case: Case, data: bytes) -> None:
    """CheckpointInvalid: what it would go on with is gone."""
    copier = op.copier("from", "to", concurrent=1, chunk=case.part)
    next(copier)
    checkpoint = copier.checkpoint()
    copier.abort()
    with pytest.raises(Aborted):
        copier.checkpoint()
    if checkpoint.payload["driver"] == "rewrite":
        pytest.skip("an abandoned rewrite leaves no trace to tell an abort by")
    with pytest.raises(CheckpointInvalid):
        op.resume(checkpoint).run()
    assert not op.exists("to")


def test_a_resumed_copy_may_be_aborted_at_once(op: Operator, case: Case, data: bytes) -> None:
    """Before its first step too: what the earlier process left is gone."""
    op.resume(part_way(op, case)).abort()
    assert list(op.leftovers()) == []
    assert not op.exists("to")


def test_a_changed_source_is_refused(op: Operator, case: Case, data: bytes) -> None:
    """Other bytes under the same name, or none: CheckpointInvalid, no target."""
    if op.capability.versions:
        pytest.skip("the pinned version is still there")
    checkpoint = part_way(op, case)
    op.write("from", content(case.large))
    with pytest.raises(CheckpointInvalid):
        op.resume(checkpoint)
    op.delete("from")
    with pytest.raises(CheckpointInvalid):
        op.resume(checkpoint)
    assert not op.exists("to")
    for leftover in list(op.leftovers()):
        op.remove_leftover(leftover)
    assert list(op.leftovers()) == []


def test_another_root_is_refused(op: Operator, other: Operator, case: Case, data: bytes) -> None:
    """The checkpoint names its source and target; neither may be another's."""
    checkpoint = part_way(op, case)
    other.write("from", data)
    with pytest.raises(CheckpointInvalid):
        other.resume(checkpoint)
    with pytest.raises(CheckpointInvalid):
        op.resume(checkpoint, into=other)
    op.resume(checkpoint).run()


def test_other_options_are_refused(op: Operator, case: Case, data: bytes) -> None:
    """A resume makes the target that was begun; only how fast may be chosen anew."""
    checkpoint = part_way(op, case)
    with pytest.raises(CheckpointInvalid):
        op.resume(checkpoint, carry_metadata=False)
    op.resume(checkpoint, concurrent=2).run()
    assert op.read("to") == data


def test_an_edited_checkpoint_is_refused(op: Operator, case: Case, data: bytes) -> None:
    """Any field that was changed by hand is found by the digest; so is a foreign file."""
    text = part_way(op, case).to_json()
    for name in json.loads(text):
        body = json.loads(text)
        body[name] = "changed"
        with pytest.raises(CheckpointInvalid):
            op.resume(json.dumps(body))
        del body[name]
        with pytest.raises(CheckpointInvalid):
            op.resume(json.dumps(body))
    for foreign in ("", "{}", "[]", "null", "not json", text[:-20]):
        with pytest.raises(CheckpointInvalid):
            op.resume(foreign)
    op.resume(text).run()


def test_a_leftover_is_found_and_removed(op: Operator, case: Case, data: bytes) -> None:
    """What a copy that never came back has left is listed under its target and can be removed."""
    part_way(op, case)
    found = list(op.leftovers())
    if not found:
        pytest.skip(f"{op.scheme} leaves nothing behind")
    assert [each.location for each in found] == [op.location("to")]
    assert list(op.leftovers("other")) == []
    op.remove_leftover(found[0])
    assert list(op.leftovers()) == []
    assert not op.exists("to")
