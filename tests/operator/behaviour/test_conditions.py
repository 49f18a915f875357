"""Conditions of a copy, on every service: atomic, or refused before any write."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from calque.errors import ConditionNotMatch, InvalidInput, NotFound, Unsupported
from calque.operator import Operator
from tests.operator.behaviour.case import Case, content
from tests.operator.recorder import Recorder


@pytest.fixture(autouse=True)
def _can_copy(need: Callable[..., None]) -> None:
    need("copy")


def test_if_not_exists(op: Operator, case: Case) -> None:
    """A new target is made; an old one stays as it is and nothing is left behind."""
    for size in (0, case.small, case.large):
        data = content(size)
        op.write("from", data)
        if not op.capability.copy_with_if_not_exists:
            seen = Recorder()
            with pytest.raises(Unsupported):
                op.layer(seen).copy("from", f"new{size}", if_not_exists=True)
            assert seen.calls == []
            continue
        op.copy("from", f"new{size}", if_not_exists=True)
        assert op.read(f"new{size}") == data
        op.write("old", b"old")
        with pytest.raises(ConditionNotMatch):
            op.copy("from", "old", if_not_exists=True)
        assert op.read("old") == b"old"
    assert list(op.leftovers()) == []


def test_a_target_made_midway_is_spared(
    op: Operator, case: Case, need: Callable[..., None]
) -> None:
    """Another writer makes the target while parts are copied: the commit is refused."""
    need("copy_with_if_not_exists")
    if case.threshold is None:
        pytest.skip("every copy is one request")
    op.write("from", content(case.large))
    copier = op.copier("from", "to", if_not_exists=True, chunk=case.part)
    next(copier)
    op.write("to", b"theirs")
    with pytest.raises(ConditionNotMatch):
        copier.run()
    assert op.read("to") == b"theirs"
    assert list(op.leftovers()) == []


def test_one_of_two_copiers_wins(op: Operator, case: Case, need: Callable[..., None]) -> None:
    """Two copies race to make one target, round after round: exactly one wins each."""
    need("copy_with_if_not_exists")
    one, two = content(case.small), content(case.small)
    op.write("one", one)
    op.write("two", two)

    def race(source: str, target: str) -> str | None:
        try:
            op.copy(source, target, if_not_exists=True)
        except ConditionNotMatch:
            return None
        return source

    with ThreadPoolExecutor(2) as pool:
        for number in range(20):
            tries = [pool.submit(race, source, f"t{number}") for source in ("one", "two")]
            winners = [done.result() for done in tries if done.result()]
            assert len(winners) == 1
            assert op.read(f"t{number}") == (one if winners == ["one"] else two)


def test_if_match(op: Operator, case: Case) -> None:
    """Only the target that was seen is replaced, on both paths."""
    for size in (case.small, case.large):
        data = content(size)
        op.write("from", data)
        op.write("to", b"seen")
        pin = op.stat("to").pin
        if not op.capability.copy_with_if_match:
            with pytest.raises(Unsupported):
                op.copy("from", "to", if_match=pin)
            assert op.read("to") == b"seen"
            continue
        op.copy("from", "to", if_match=pin)
        assert op.read("to") == data
        with pytest.raises(ConditionNotMatch):
            op.copy("from", "to", if_match=pin)
        assert op.read("to") == data
        with pytest.raises((ConditionNotMatch, NotFound)):
            op.copy("from", "absent", if_match=pin)
        assert not op.exists("absent")
    assert list(op.leftovers()) == []


def test_a_source_that_was_replaced_before(op: Operator) -> None:
    """source_if_match names the bytes that are meant; others are not copied."""
    op.write("from", b"one")
    pin = op.stat("from").pin
    op.copy("from", "to", source_if_match=pin)
    op.write("from", b"two")
    with pytest.raises(ConditionNotMatch):
        op.copy("from", "to2", source_if_match=pin)
    assert not op.exists("to2")


def test_a_source_that_changes_between_stat_and_step(
    op: Operator, case: Case, need: Callable[..., None]
) -> None:
    """The copier looked at the source once; other bytes are a ConditionNotMatch, no target."""
    need("copy_source_pinned")
    if op.capability.read_with_version:
        pytest.skip("the pinned version is still there")
    for size in (case.small, case.large):
        op.write("from", content(size))
        copier = op.copier("from", "to")
        op.write("from", content(size))
        with pytest.raises(ConditionNotMatch):
            copier.run()
        assert not op.exists("to")
    assert list(op.leftovers()) == []


def test_a_source_that_changes_midway(op: Operator, case: Case, need: Callable[..., None]) -> None:
    """Between two parts: ConditionNotMatch, aborted, no target; never a mixed object."""
    need("copy_source_pinned")
    if case.threshold is None or op.capability.read_with_version:
        pytest.skip("no parts, or the pinned version is still there")
    op.write("from", content(case.large))
    copier = op.copier("from", "to", concurrent=1, chunk=case.part)
    next(copier)
    op.write("from", content(case.large))
    with pytest.raises(ConditionNotMatch):
        copier.run()
    assert not op.exists("to")
    assert list(op.leftovers()) == []


def test_a_source_that_is_deleted_midway(
    op: Operator, case: Case, need: Callable[..., None]
) -> None:
    """NotFound, aborted, no target."""
    need("copy_source_pinned")
    if case.threshold is None or op.capability.versions:
        pytest.skip("no parts, or the pinned version is still there")
    op.write("from", content(case.large))
    copier = op.copier("from", "to", concurrent=1, chunk=case.part)
    next(copier)
    op.delete("from")
    with pytest.raises(NotFound):
        copier.run()
    assert not op.exists("to")
    assert list(op.leftovers()) == []


def test_the_pinned_version_is_copied(op: Operator, case: Case, need: Callable[..., None]) -> None:
    """With versions, what the copier looked at is copied although a newer one appears."""
    need("read_with_version", "versions")
    for size in (case.small, case.large):
        data = content(size)
        op.write("from", data)
        version = op.stat("from").version
        copier = op.copier("from", "to", chunk=case.part)
        op.write("from", content(size))
        copier.run()
        assert op.read("to") == data
        op.copy("from", "again", source_version=version)
        assert op.read("again") == data


def test_conditions_exclude_each_other(op: Operator) -> None:
    """if_not_exists together with if_match is bad input."""
    op.write("from", b"x")
    with pytest.raises(InvalidInput):
        op.copy("from", "to", if_not_exists=True, if_match="e")
    with pytest.raises(InvalidInput, match="overwrite"):
        op.copy("from", "to", overwrite=True)  # type: ignore[call-arg]
    assert not op.exists("to")
