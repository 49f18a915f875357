"""Objects of a tree: pinned, whole, durable by the batch, stopped, refused one by one."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import threading
from pathlib import Path

import pytest

import calque
from calque.errors import CalqueError, ConditionNotMatch, InvalidInput, ResourceExhausted
from calque.operator import Operator
from calque.operator.layers import Call, Fault, FaultInjection
from calque.transfer.api import copy_tree, move_tree, sync_tree
from calque.transfer.model import Row
from tests.transfer.conftest import MakeTree, files_of, objects_of

MIB = 1024 * 1024


class Meddling:
    """A layer that calls somebody before a request of a verb, as a neighbour would come between."""

    def __init__(self, verb: str, meddle: object, times: int = 1) -> None:
        self._verb, self._meddle, self._left = verb, meddle, times
        self._lock = threading.Lock()

    def __call__(self, call: Call, proceed):  # type: ignore[no-untyped-def]
        with self._lock:
            wanted = call.verb == self._verb and self._left > 0
            self._left -= wanted
        if wanted:
            self._meddle(call.path)  # type: ignore[operator]
        return proceed(call)


def test_a_source_that_changes_is_copied_as_it_is_now(make_tree: MakeTree, tmp_path: Path) -> None:
    """Changed once since it was listed: the new bytes; whenever it is read: ``changed``."""
    source = Operator.from_uri("memory://")
    source.write("a", b"old bytes")
    number = iter(range(100))

    def rewrite(path: str) -> None:
        source.write("a", b"new bytes %d" % next(number))

    report = copy_tree(source.layer(Meddling("read", rewrite)), tmp_path / "one")
    assert report.ok
    assert files_of(tmp_path / "one") == {"a": b"new bytes 0"}
    report = copy_tree(source.layer(Meddling("read", rewrite, 99)), tmp_path / "two")
    assert [(row.path, row.outcome) for row in report.problems] == [("a", "changed")]
    assert report.exit_code == 1
    assert not (tmp_path / "two" / "a").exists()


def test_a_source_that_vanishes_is_told(tmp_path: Path) -> None:
    """Deleted since it was listed: ``changed``, and nothing is made."""
    source = Operator.from_uri("memory://")
    for name in "ab":
        source.write(name, b"x")
    meddler = Meddling("read", lambda path: source.delete(path))
    report = copy_tree(source.layer(meddler), tmp_path / "target", concurrent=1)
    assert [row.outcome for row in report.problems] == ["changed"]
    assert len(files_of(tmp_path / "target")) == 1
    assert report.exit_code == 3


def test_never_overwrite(make_tree: MakeTree) -> None:
    """What is there and differs is an error of its own, also when it appears midway."""
    source = make_tree("source", {"new": b"1", "same": b"2", "other": b"3", "race": b"4"})
    target = Operator.from_uri("memory://never-overwrite")
    target.write("same", b"2")
    target.write("other", b"theirs")

    def race(path: str) -> None:
        if not target.exists("race"):
            target.write("race", b"quicker")

    report = copy_tree(f"{source}/", target.layer(Meddling("write", race, 9)), if_not_exists=True)
    assert sorted((row.path, row.error) for row in report.problems) == [
        ("other", "AlreadyExists"),
        ("race", "ConditionNotMatch"),
    ]
    assert objects_of(target) == {
        "new": b"1",
        "same": b"2",
        "other": b"theirs",
        "race": b"quicker",
    }


def test_one_failure_does_not_keep_the_others_back(make_tree: MakeTree) -> None:
    """The rest goes on, or nothing more is begun, as --on-error says; the exit codes tell."""
    source = make_tree("source", {f"{number:03}": b"x" for number in range(50)})
    refuse = InvalidInput("refused for a test")
    for policy in ("continue", "stop"):
        target = Operator.from_uri("memory://")
        broken = target.layer(FaultInjection(Fault(verb="write", nth=5, error=refuse)))
        report = copy_tree(
            f"{source}/",
            broken,
            concurrent=1,
            on_error=policy,  # type: ignore[arg-type]
            journal=False,
        )
        assert [row.error for row in report.problems] == ["InvalidInput"]
        assert report.exit_code == 3
        assert len(objects_of(target)) == (49 if policy == "continue" else 4)
        assert bool(report.error) == (policy == "stop")


def test_a_stop_at_an_error_is_one_at_any_error(make_tree: MakeTree) -> None:
    """A name that cannot be at the target, a delete that is refused: nothing more is begun."""
    memory = Operator.from_uri("memory://any-error")
    for key in ("a", "a/b", *(f"c{number:03}" for number in range(50))):
        memory.write(key, b"1")
    target = make_tree("target", {})
    report = copy_tree(memory, target, concurrent=1, on_error="stop", journal=False)
    assert [row.path for row in report.problems] == ["a/b"]
    assert report.totals.of("copied").objects < 50
    assert report.error
    dry = copy_tree(memory, target, on_error="stop", dry_run=True)
    assert dry.totals.of("copied").objects + dry.totals.of("up to date").objects == 51
    source = make_tree("source", {"f": b"1"})
    refuse = FaultInjection(Fault(verb="delete", times=99, error=InvalidInput("refused")))
    report = sync_tree(
        f"{source}/",
        memory.layer(refuse),
        delete=True,
        max_delete="100%",
        concurrent=1,
        on_error="stop",
        journal=False,
    )
    assert len(report.problems) == 1
    assert (report.exit_code, bool(report.error)) == (3, True)


def test_a_disk_that_fills_up_stops_the_run(make_tree: MakeTree) -> None:
    """What was copied is told, nothing more is begun, and it is no stop by hand."""
    source = make_tree("source", {f"{number:03}": b"x" for number in range(50)})
    target = Operator.from_uri("memory://")
    full = FaultInjection(Fault(verb="write", nth=5, times=99, error=ResourceExhausted("full")))
    report = copy_tree(f"{source}/", target.layer(full), concurrent=1, journal=False)
    assert report.totals.of("copied").objects == 4
    assert len(report.problems) == 1
    assert report.exit_code == 3


def test_an_object_that_is_too_large_fails_alone(make_tree: MakeTree, tmp_path: Path) -> None:
    """Others have room: no file may be larger than the system allows, and that stops no run."""
    source = make_tree("source", {"a": b"x", "b": bytes(2 * MIB), "c": b"x"})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, before[1]))
    try:
        report = copy_tree(f"{source}/", f"{tmp_path}/target/", concurrent=1, journal=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [(row.path, row.error) for row in report.problems] == [("b", "InvalidInput")]
    assert sorted(os.listdir(tmp_path / "target")) == ["a", "c"]


def test_rows_are_one_for_each_object_after_the_act(make_tree: MakeTree) -> None:
    """``on_event`` gets every row; when it does the object is there; totals are an own count."""
    source = make_tree("source", {f"{n % 5}/{n}": b"x" * n for n in range(100)})
    target = Operator.from_uri("memory://rows")
    seen: list[Row] = []

    def check(row: Row) -> None:
        assert target.stat(row.path).size == row.target_size
        seen.append(row)

    report = copy_tree(f"{source}/", target, on_event=check)
    assert sorted(row.path for row in seen) == sorted(files_of(source))
    listed = list(target.list())
    assert report.totals.of("copied").objects == len(listed)
    assert report.totals.of("copied").bytes == sum(entry.size for entry in listed)


def test_times_holes_and_hard_links_between_file_systems(
    make_tree: MakeTree, tmp_path: Path
) -> None:
    """Files get their sources' times to the nanosecond, stay sparse, and links become files."""
    source = make_tree("source", {"a": b"1"})
    os.utime(source / "a", ns=(1_600_000_000_123_456_789, 1_600_000_000_123_456_789))
    os.link(source / "a", source / "twin")
    with open(source / "sparse", "wb") as file:
        file.truncate(4 * MIB)
        file.seek(2 * MIB)
        file.write(b"in the middle")
    target = tmp_path / "target"
    assert copy_tree(f"{source}/", target).ok
    assert files_of(target) == files_of(source)
    assert (target / "a").stat().st_mtime_ns == 1_600_000_000_123_456_789
    assert (target / "a").stat().st_ino != (target / "twin").stat().st_ino
    assert (target / "sparse").stat().st_blocks * 512 < MIB


def test_a_move_of_files_renames_them(make_tree: MakeTree, tmp_path: Path) -> None:
    """The same inodes under the target; the folder that was named is gone."""
    source = make_tree("source", {"a": b"1", "deep/er/b": b"2"})
    inode = (source / "a").stat().st_ino
    report = move_tree(source, tmp_path / "target")
    assert report.ok, report.problems
    assert files_of(tmp_path / "target") == {"source/a": b"1", "source/deep/er/b": b"2"}
    assert (tmp_path / "target/source/a").stat().st_ino == inode
    assert report.totals.by_route["renamed"].objects == 2
    assert not source.exists()


def test_a_move_never_trusts_a_time(make_tree: MakeTree, tmp_path: Path) -> None:
    """A target of the same size that is newer is made anew before its source is deleted."""
    source = make_tree("source", {"a": b"mine!"})
    target = Operator.from_uri("memory://move-time")
    target.write("a", b"other")
    report = move_tree(f"{source}/", target)
    assert report.ok
    assert target.read("a") == b"mine!"
    assert files_of(source) == {}


def test_a_move_between_names_that_a_server_may_take_for_one_deletes_nothing() -> None:
    """``A/x`` to ``a/x``: copied, but the source stays, and the row says why."""
    memory = Operator.from_uri("memory://aliases")
    memory.write("A/x", b"1")
    report = move_tree("memory://aliases/A/", "memory://aliases/a/")
    assert [row.error for row in report.problems] == ["IsSameFile"]
    assert objects_of(memory) == {"A/x": b"1", "a/x": b"1"}


def test_what_becomes_what(make_tree: MakeTree, tmp_path: Path) -> None:
    """A slash at the end means what is inside; without it the folder, or object, keeps its name."""
    source = make_tree("source", {"a": b"1", "f/b": b"2"})
    cases = [
        (f"{source}/", {"a": b"1", "f/b": b"2"}),
        (str(source), {"source/a": b"1", "source/f/b": b"2"}),
        (f"{source}/a", {"a": b"1"}),
        (f"{source}/f", {"f/b": b"2"}),
        (f"{source}/*", {"a": b"1", "f/b": b"2"}),
        (f"{source}/f*", {"f/b": b"2"}),
        (f"{source}/**/b", {"f/b": b"2"}),
        ([f"{source}/a", f"{source}/f"], {"a": b"1", "f/b": b"2"}),
    ]
    memory = Operator.from_uri("memory://what-becomes")
    copy_tree(source, memory)
    for number, (given, expected) in enumerate(cases):
        target = tmp_path / f"target{number}"
        assert copy_tree(given, target).ok
        assert files_of(target) == expected
        texts = [given] if isinstance(given, str) else given
        same = [text.replace(str(tmp_path), "memory://what-becomes") for text in texts]
        again = tmp_path / f"again{number}"
        assert copy_tree(same, again).ok
        assert files_of(again) == expected


def test_named_paths_alone_are_looked_at(make_tree: MakeTree) -> None:
    """``files_from``: each that is missing is one failed entry, and no listing is sent."""
    source = make_tree("source", {"a": b"1", "b": b"2", "c/d": b"3"})
    target = Operator.from_uri("memory://named")
    counted = FaultInjection()
    report = copy_tree(f"{source}/", target.layer(counted), files_from=["c/d", "none", "a"])
    assert objects_of(target) == {"a": b"1", "c/d": b"3"}
    assert [(row.path, row.error) for row in report.problems] == [("none", "NotFound")]
    assert counted.count("list") == 0


def test_filters_hold_on_both_sides(make_tree: MakeTree) -> None:
    """What is excluded is neither copied nor deleted, unless that is asked for."""
    source = make_tree("source", {"a": b"1", "skip/x": b"2", "big": b"12345"})
    target = make_tree("target", {"skip/old": b"3", "gone": b"4", "big": b"0"})
    report = sync_tree(f"{source}/", target, delete=True, exclude=["skip/"], max_size=3)
    assert report.ok
    assert files_of(target) == {"a": b"1", "skip/old": b"3", "big": b"0"}
    report = sync_tree(f"{source}/", target, delete=True, exclude=["skip/"], delete_excluded=True)
    assert files_of(target) == {"a": b"1", "big": b"12345"}


def test_an_excluded_folder_is_not_opened(make_tree: MakeTree) -> None:
    """A folder that may not be read is no error where it is excluded whole."""
    source = make_tree("source", {"a": b"1", "closed/b": b"2"})
    seen: list[str] = []
    service = Operator.from_uri(source).service
    list(service.walk("", skip=lambda folder: seen.append(folder) or True, tell=lambda *_: None))  # type: ignore[attr-defined]
    assert seen == ["closed/"]
    target = Operator.from_uri("memory://pruned")
    report = copy_tree(f"{source}/", target, exclude=["closed/"])
    assert report.ok
    assert objects_of(target) == {"a": b"1"}


def test_empty_folders(make_tree: MakeTree, tmp_path: Path) -> None:
    """Kept between file systems; as markers where asked for; markers become folders again."""
    source = make_tree("source", {"a": b"1"})
    (source / "empty" / "inner").mkdir(parents=True)
    copy_tree(f"{source}/", tmp_path / "files")
    assert (tmp_path / "files/empty/inner").is_dir()
    plain, marked = (Operator.from_uri("memory://") for _ in range(2))
    report = copy_tree(f"{source}/", plain)
    assert report.totals.of("skipped").objects == 1
    copy_tree(f"{source}/", marked, folders=True)
    assert [entry.path for entry in marked.list()] == ["a", "empty/inner/"]
    copy_tree(marked, tmp_path / "back")
    assert (tmp_path / "back/empty/inner").is_dir()


def test_awaited_and_cancelled(make_tree: MakeTree) -> None:
    """The asynchronous face gives the same report; a cancelled task stops the run."""
    source = make_tree("source", {f"{number:03}": b"x" for number in range(200)})
    target = Operator.from_uri("memory://awaited")

    async def whole() -> int:
        report = await calque.copy_tree_async(f"{source}/", target)
        return report.totals.of("copied").objects

    assert asyncio.run(whole()) == 200
    begun = threading.Event()
    slow = FaultInjection(Fault(verb="write", times=10**6, delay=0.05))

    async def stopped() -> None:
        task = asyncio.ensure_future(
            calque.copy_tree_async(
                f"{source}/",
                Operator.from_uri("memory://cancelled").layer(slow),
                concurrent=1,
                on_event=lambda row: begun.set(),
            )
        )
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stopped())
    assert 0 < slow.count("write") < 200


def test_unknown_options_are_named() -> None:
    """A keyword that does not exist is an error that lists those that do."""
    with pytest.raises(InvalidInput, match="no option 'consistent'"):
        copy_tree("a/", "b/", consistent=True)  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match="deletes nothing"):
        copy_tree("a/", "b/", delete=True)
    for wrong in ({"concurrent": 0}, {"compare": "guess"}, {"include": "*.csv"}):
        with pytest.raises(CalqueError):
            copy_tree("a/", "b/", **wrong)  # type: ignore[arg-type]


def test_a_condition_of_the_target_is_no_change_of_the_source() -> None:
    """Which of the two has refused is told apart by a look at the source."""
    source, target = (Operator.from_uri("memory://") for _ in range(2))
    source.write("a", b"1")
    refuse = FaultInjection(Fault(verb="write", error=ConditionNotMatch("the target says no")))
    report = copy_tree(source, target.layer(refuse), journal=False)
    assert [(row.outcome, row.error) for row in report.problems] == [
        ("failed", "ConditionNotMatch")
    ]


def test_a_file_that_only_looks_like_our_copy_proves_nothing(make_tree: MakeTree) -> None:
    """Rewritten with the same size and time: a move makes it anew before the source goes."""
    memory = Operator.from_uri("memory://looks-like-ours")
    memory.write("f", b"good")
    target = make_tree("target", {})
    assert copy_tree(memory, target).ok
    made = os.stat(target / "f").st_mtime_ns
    (target / "f").write_bytes(b"evil")
    os.utime(target / "f", ns=(made, made))
    assert move_tree(memory, target).ok
    assert files_of(target) == {"f": b"good"}
    assert list(memory.list()) == []


def test_a_target_that_others_changed_is_made_anew(make_tree: MakeTree) -> None:
    """Rewritten with the same size and a newer time, or deleted; other targets stay as they are."""
    source = make_tree("source", {"f": b"1", "g": b"1"})
    one, two = (Operator.from_uri(f"memory://changed-{name}") for name in ("one", "two"))
    for target in (one, two):
        assert copy_tree(f"{source}/", target).totals.of("copied").objects == 2
    one.write("f", b"2")
    one.delete("g")
    assert copy_tree(f"{source}/", one).totals.of("copied").objects == 2
    assert objects_of(one) == {"f": b"1", "g": b"1"}
    for target in (one, two):
        assert copy_tree(f"{source}/", target).totals.of("up to date").objects == 2


def test_a_named_path_that_cannot_be_copied_is_one_entry(make_tree: MakeTree) -> None:
    """A folder, a socket, a name that no file has, one that is too long: each is told as failed
    with its reason, and those beside them arrive."""
    source = make_tree("source", {"a": b"1", "folder/b": b"2"})
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "socket"))
        names = ["a", "folder", "folder/b", "folder/none", "socket", "x" * 300, "nul\0"]
        for dry_run in (True, False):
            rows: list[Row] = []
            report = copy_tree(
                f"{source}/",
                Operator.from_uri("memory://"),
                files_from=names,
                dry_run=dry_run,
                on_event=rows.append,
            )
            assert report.exit_code == 3
            failed = {row.path: row.error for row in rows if row.outcome == "failed"}
            assert failed.keys() == {*names} - {"a", "folder/b"}
            assert failed["folder"] == "IsADirectory"
            assert failed["folder/none"] == "NotFound"
            assert len(rows) == len(names)
