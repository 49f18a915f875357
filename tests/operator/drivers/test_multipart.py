"""The multipart driver: queue, order, commit, abort."""

import signal
import threading
from collections.abc import Callable

import pytest

from calque.errors import (
    Aborted,
    ConditionNotMatch,
    NotFound,
    PermissionDenied,
    Unavailable,
    Unexpected,
)
from calque.operator import Operator
from calque.operator.drivers.verbs import CommitConflict
from calque.operator.layers.chain import Call
from tests.operator.drivers.conftest import PARTS, SIZE
from tests.operator.recorder import Hook, Recorder, failing


def interrupt_main() -> None:
    """Ctrl-C, as the terminal sends it."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@pytest.mark.parametrize("concurrent", [1, 2, 5, PARTS])
def test_exactly_so_many_parts_are_in_flight(op: Operator, concurrent: int) -> None:
    """The server answers no part before as many are there as were asked for, while enough remain;
    there are never more."""
    gate = threading.Barrier(concurrent)
    full_rounds = PARTS // concurrent * concurrent

    def hold(number: int) -> None:
        if number <= full_rounds:
            gate.wait(timeout=30)

    seen = Recorder()
    op.layer(Hook("copy_part", hold)).layer(seen).copy("from", "to", concurrent=concurrent)
    assert seen.most["copy_part"] == concurrent
    assert seen.count("copy_part") == PARTS
    assert op.read("to") == op.read("from")


def test_more_threads_than_parts_do_no_harm(op: Operator) -> None:
    """A concurrency of a thousand is as many as there are parts."""
    before = threading.active_count()
    op.copy("from", "to", concurrent=1000)
    assert threading.active_count() <= before + 1
    assert op.read("to") == op.read("from")


def test_steps_come_as_parts_finish_and_the_commit_is_in_order(op: Operator) -> None:
    """The first part is not answered before all others were told; the bytes are in order."""
    others_told = threading.Event()

    def hold(number: int) -> None:
        if number == 1 and not others_told.wait(30):
            raise Unexpected("steps do not come as parts finish")

    copier = op.layer(Hook("copy_part", hold)).copier("from", "to", concurrent=3)
    steps = [next(copier) for _ in range(PARTS - 1)]
    others_told.set()
    steps += copier
    assert len(steps) == PARTS
    assert sum(steps) == SIZE
    assert op.read("to") == op.read("from")


def test_a_failing_part_stops_the_copy(op: Operator) -> None:
    """Its own error is raised, the others are awaited, the upload is aborted, none is left."""
    seen = Recorder()
    wrong = PermissionDenied("not this part")
    broken = op.layer(Hook("copy_part", failing(wrong, 4))).layer(seen)
    with pytest.raises(PermissionDenied) as raised:
        broken.copy("from", "to", concurrent=3)
    assert raised.value is wrong
    assert seen.flying["copy_part"] == 0
    assert seen.count("copy_part") < PARTS
    assert seen.count("complete") == 0
    assert not op.exists("to")
    assert list(op.leftovers()) == []


def test_after_an_error_iterating_raises_it_again_and_abort_cleans(op: Operator) -> None:
    """A failed copier never ends like a success; abort stays available, and twice is no error."""
    wrong = Unexpected("what was that")
    copier = op.layer(Hook("copy_part", failing(wrong, 2))).copier("from", "to", concurrent=1)
    next(copier)
    for _ in range(3):
        with pytest.raises(Unexpected) as raised:
            next(copier)
        assert raised.value is wrong
    assert len(list(op.leftovers())) == 1
    copier.abort()
    copier.abort()
    assert list(op.leftovers()) == []
    with pytest.raises(Unexpected):
        next(copier)


def test_a_failed_copy_may_be_kept_for_a_resume(op: Operator) -> None:
    """After an outage the caller may pause, not abort; finished parts are not copied twice."""
    away = Unavailable("network is down")
    seen = Recorder()
    copier = op.layer(Hook("copy_part", failing(away, 6))).copier("from", "to", concurrent=2)
    with pytest.raises(Unavailable):
        list(copier)
    checkpoint = copier.pause()
    done = len(checkpoint.payload["parts"])
    assert done >= 4
    resumed = op.layer(seen).resume(checkpoint)
    assert sum(resumed) == SIZE
    assert seen.count("copy_part") == PARTS - done
    assert op.read("to") == op.read("from")


def test_the_servers_list_wins_over_the_checkpoint(op: Operator) -> None:
    """Parts copied after the checkpoint was taken are found; none is copied twice."""
    copier = op.copier("from", "to", concurrent=1)
    next(copier)
    early = copier.checkpoint()
    for _ in range(5):
        next(copier)
    held = len(copier.pause().payload["parts"])
    seen = Recorder()
    resumed = op.layer(seen).resume(early)
    assert sum(resumed) == SIZE
    assert seen.count("copy_part") == PARTS - held


def test_a_commit_whose_answer_was_lost_is_found(op: Operator) -> None:
    """The server committed, the answer never came, the repeat finds no upload: it is complete."""

    class LostAnswer:
        def __call__(self, call: Call, proceed: Callable[[Call], object]) -> object:
            if call.verb == "complete":
                proceed(call)
            return proceed(call)

    made = op.layer(LostAnswer()).copy("from", "to")  # type: ignore[arg-type]
    assert made.size == SIZE
    assert op.read("to") == op.read("from")


def test_a_commit_that_was_killed_before_its_answer_is_resumed_as_complete(op: Operator) -> None:
    """After the commit but before the next checkpoint: the resume reports completed."""
    cut = Hook("complete", failing(Unavailable("killed here")), after=True)
    copier = op.layer(cut).copier("from", "to", if_not_exists=True)
    with pytest.raises(Unavailable):
        list(copier)
    checkpoint = copier.pause()
    seen = Recorder()
    resumed = op.layer(seen).resume(checkpoint)
    assert sum(resumed) == SIZE
    assert resumed.metadata.pin == op.stat("to").pin
    assert seen.count("copy_part") == 0


def test_a_conflict_restarts_the_upload(op: Operator) -> None:
    """Every part is copied again into a new upload; bytes count once; the old one is gone."""
    seen = Recorder()
    racing = op.layer(Hook("complete", failing(CommitConflict(), 1, 2))).layer(seen)
    copier = racing.copier("from", "to", concurrent=4)
    assert sum(copier) == SIZE
    assert seen.count("initiate") == 3
    assert seen.count("copy_part") == 3 * PARTS
    assert op.read("to") == op.read("from")
    assert list(op.leftovers()) == []


def test_conflicts_without_end_are_given_up(op: Operator) -> None:
    """Within a bound, as ConditionNotMatch; nothing is left."""
    seen = Recorder()
    racing = op.layer(Hook("complete", failing(CommitConflict()))).layer(seen)
    with pytest.raises(ConditionNotMatch):
        racing.copy("from", "to")
    assert seen.count("complete") == 4
    assert not op.exists("to")
    assert list(op.leftovers()) == []


def test_an_abort_that_fails_is_attached_to_the_error(op: Operator) -> None:
    """The original error is raised; its note tells of the abort and names what is left."""
    broken = op.layer(Hook("copy_part", failing(Unexpected("first"), 2))).layer(
        Hook("abort", failing(Unavailable("second")))
    )
    with pytest.raises(Unexpected, match="first") as raised:
        broken.copy("from", "to")
    left = next(iter(op.leftovers()))
    notes = "\n".join(raised.value.__notes__)
    assert "second" in notes
    assert left.id in notes
    assert op.location("to") in notes


def test_an_abort_that_failed_may_be_tried_again(op: Operator) -> None:
    """The second abort removes what the first could not."""
    copier = op.layer(Hook("abort", failing(Unavailable("not now"), 1))).copier("from", "to")
    next(copier)
    with pytest.raises(Unavailable):
        copier.abort()
    copier.abort()
    assert list(op.leftovers()) == []
    with pytest.raises(Aborted):
        next(copier)


def test_an_abort_is_repeated_while_parts_land(op: Operator) -> None:
    """Parts that land after the abort are found by a listing, and aborted again."""

    class Stubborn:
        """Swallows the first two aborts, as if parts had landed right after them."""

        def __init__(self) -> None:
            self.aborts = 0

        def __call__(self, call: Call, proceed: Callable[[Call], object]) -> object:
            if call.verb == "abort":
                self.aborts += 1
                return proceed(call) if self.aborts > 2 else None
            return proceed(call)

    stubborn = Stubborn()
    copier = op.layer(stubborn).copier("from", "to")  # type: ignore[arg-type]
    next(copier)
    copier.abort()
    assert stubborn.aborts == 3
    assert list(op.leftovers()) == []


def test_an_upload_that_cannot_be_started(op: Operator) -> None:
    """The error is raised, there is nothing to abort, and nothing is."""
    seen = Recorder()
    broken = op.layer(Hook("initiate", failing(PermissionDenied("no")))).layer(seen)
    with pytest.raises(PermissionDenied):
        broken.copy("from", "to")
    assert seen.verbs == ["stat", "initiate"]


def test_an_interrupt_during_initiate_loses_no_upload(op: Operator) -> None:
    """Ctrl-C while the upload is being opened: its id is still learnt and it is aborted."""

    def interrupt(_: int) -> None:
        interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        op.layer(Hook("initiate", interrupt, after=True)).copy("from", "to")
    assert list(op.leftovers()) == []
    assert not op.exists("to")


@pytest.mark.parametrize("at", [1, 5, PARTS])
def test_an_interrupt_during_a_part_leaves_nothing(op: Operator, at: int) -> None:
    """Ctrl-C in any part: in-flight parts are awaited, the upload is aborted."""

    def interrupt(number: int) -> None:
        if number == at:
            interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        op.layer(Hook("copy_part", interrupt)).copy("from", "to", concurrent=3)
    assert list(op.leftovers()) == []
    assert not op.exists("to")


def test_an_interrupted_copier_is_paused_and_resumed(op: Operator) -> None:
    """Ctrl-C while driving by hand: it does not go on as if nothing were, but nothing is lost."""

    def interrupt(number: int) -> None:
        if number == 5:
            interrupt_main()

    copier = op.layer(Hook("copy_part", interrupt)).copier("from", "to", concurrent=1)
    with pytest.raises(KeyboardInterrupt):
        list(copier)
    with pytest.raises(Aborted, match="interrupted"):
        next(copier)
    seen = Recorder()
    resumed = op.layer(seen).resume(copier.pause())
    assert sum(resumed) == SIZE
    assert seen.count("copy_part") <= PARTS - 4
    assert op.read("to") == op.read("from")


def test_a_source_deleted_midway(op: Operator) -> None:
    """NotFound, aborted, no target."""
    copier = op.copier("from", "to", concurrent=1)
    next(copier)
    op.delete("from")
    with pytest.raises(NotFound):
        copier.run()
    assert list(op.leftovers()) == []


def test_an_abort_from_another_thread_waits_for_the_step(op: Operator) -> None:
    """The step under way ends first, then the upload is gone; the driving loop gets Aborted."""
    inside, go_on = threading.Event(), threading.Event()

    def hold(number: int) -> None:
        if number == 3:
            inside.set()
            go_on.wait(30)

    copier = op.layer(Hook("copy_part", hold)).copier("from", "to", concurrent=1)
    failures: list[Exception] = []

    def drive() -> None:
        try:
            for _ in copier:
                pass
        except Exception as error:
            failures.append(error)

    driving = threading.Thread(target=drive)
    driving.start()
    assert inside.wait(30)
    aborting = threading.Thread(target=copier.abort)
    aborting.start()
    while not copier._stopping:
        pass
    go_on.set()
    aborting.join(30)
    driving.join(30)
    assert [type(failure) for failure in failures] == [Aborted]
    assert not op.exists("to")
    assert list(op.leftovers()) == []
