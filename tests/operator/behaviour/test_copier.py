"""The Copier's contract, on every service."""

import gc
import warnings
from collections.abc import Callable

import pytest

from calque.errors import Aborted, InvalidInput
from calque.operator import Operator
from tests.operator.behaviour.case import Case, content
from tests.operator.recorder import Recorder


@pytest.fixture(autouse=True)
def _can_copy(need: Callable[..., None]) -> None:
    need("copy")


def test_steps_sum_up_and_progress_never_goes_back(op: Operator, case: Case) -> None:
    """On every path: steps are not negative, sum up to the size, progress ends at the total."""
    for size in case.sizes:
        op.write("from", content(size))
        copier = op.copier("from", f"to{size}")
        assert copier.progress.total == size
        assert copier.progress.copied == 0
        before, steps = 0, []
        for step in copier:
            steps.append(step)
            assert step >= 0
            assert copier.progress.copied >= before
            before = copier.progress.copied
        assert sum(steps) == size
        assert copier.progress.copied == copier.progress.total == size
        assert copier.progress.fraction == 1.0


def test_a_finished_copier_keeps_ending(op: Operator, case: Case) -> None:
    """Iterating again ends again; abort afterwards does nothing; the target stays."""
    for size in (0, case.small, case.large):
        data = content(size)
        op.write("from", data)
        copier = op.copier("from", "to")
        list(copier)
        assert list(copier) == []
        copier.abort()
        assert list(copier) == []
        assert copier.metadata.size == size
        assert op.read("to") == data


def test_the_target_is_invisible_until_the_copy_ends(op: Operator, case: Case) -> None:
    """Parts that are copied show nothing: neither by stat nor in a listing."""
    if case.threshold is None:
        pytest.skip("every copy is one request")
    op.write("from", content(case.large))
    copier = op.copier("from", "to", concurrent=1, chunk=case.part)
    copied = 0
    while copied < case.large - case.part:
        copied += next(copier)
        assert not op.exists("to")
        assert [entry.path for entry in op.list()] == ["from"]
    list(copier)
    assert op.exists("to")


def test_metadata_only_after_the_end(op: Operator, case: Case) -> None:
    """Before the copy is complete there is no metadata to be had."""
    op.write("from", content(case.large))
    with op.copier("from", "to") as copier:
        with pytest.raises(InvalidInput):
            _ = copier.metadata
        list(copier)
        assert copier.metadata.size == case.large


def test_making_a_copier_writes_nothing(op: Operator, case: Case) -> None:
    """Before the first step only the source was looked at; an abort then sends nothing."""
    op.write("from", content(case.large))
    seen = Recorder()
    copier = op.layer(seen).copier("from", "to")
    assert set(seen.verbs) <= {"stat"}
    sent = len(seen.calls)
    copier.abort()
    assert len(seen.calls) == sent
    with pytest.raises(Aborted):
        next(copier)
    assert not op.exists("to")


def test_abort_midway_leaves_nothing(op: Operator, case: Case) -> None:
    """What was there before is there after; nothing is left on the server; twice is no error."""
    op.write("from", content(case.large))
    op.write("to", b"old")
    copier = op.copier("from", "to", concurrent=3, chunk=case.part)
    if case.threshold is None:
        copier.abort()
    else:
        next(copier)
        copier.abort()
    copier.abort()
    with pytest.raises(Aborted):
        next(copier)
    with pytest.raises(Aborted):
        list(copier)
    assert op.read("to") == b"old"
    assert sorted(entry.path for entry in op.list()) == ["from", "to"]
    assert list(op.leftovers()) == []


@pytest.mark.parametrize("error", [RuntimeError("stop"), KeyboardInterrupt()])
def test_leaving_a_with_block_early_aborts(op: Operator, case: Case, error: BaseException) -> None:
    """By an exception or an interrupt: it passes through and nothing is left."""
    if case.threshold is None:
        pytest.skip("every copy is one request")
    op.write("from", content(case.large))

    def leave() -> None:
        with op.copier("from", "to", chunk=case.part) as copier:
            next(copier)
            raise error

    with pytest.raises(type(error)):
        leave()
    assert not op.exists("to")
    assert list(op.leftovers()) == []


def test_leaving_a_with_block_unfinished_aborts(op: Operator, case: Case) -> None:
    """A break out of the loop is an abort too."""
    if case.threshold is None:
        pytest.skip("every copy is one request")
    op.write("from", content(case.large))
    with op.copier("from", "to", chunk=case.part) as copier:
        for _ in copier:
            break
    assert not op.exists("to")
    assert list(op.leftovers()) == []
    with pytest.raises(Aborted):
        next(copier)


def test_a_forgotten_copier_warns(op: Operator, case: Case) -> None:
    """Garbage-collected in the middle: a ResourceWarning, at once; untouched or done: silence."""
    if case.threshold is None:
        pytest.skip("every copy is one request")
    op.write("from", content(case.large))
    gc.collect()  # what other tests left behind has warnings of its own
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        untouched = op.copier("from", "to")
        del untouched
        done = op.copier("from", "to")
        list(done)
        del done
        gc.collect()
        assert [each for each in caught if each.category is ResourceWarning] == []
        copier = op.copier("from", "to2", concurrent=2, chunk=case.part)
        next(copier)
        del copier
        gc.collect()
    found = [each for each in caught if each.category is ResourceWarning]
    assert len(found) == 1
    assert "to2" in str(found[0].message)
    for leftover in list(op.leftovers()):
        op.remove_leftover(leftover)
