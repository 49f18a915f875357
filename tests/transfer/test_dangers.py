"""What peers destroy data by: overlaps, empty sources, orders, look-alikes, links, odd keys."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from calque.errors import InvalidInput, IsSameFile, NotFound, Unexpected
from calque.operator import Operator
from calque.operator.layers import Fault, FaultInjection
from calque.operator.options import WriteOptions
from calque.transfer.api import (
    PreparedRun,
    TreeRequest,
    copy_tree,
    move_tree,
    remove_tree,
    sync_tree,
)
from calque.transfer.model import Row
from calque.transfer.report.report_file import read_report
from calque.transfer.request.options import Links, TreeOptions
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import MakeTree, files_of, objects_of, s3_options

NINE = {f"{folder}/{name}": name.encode() for folder in ("dir", "dir-2", "dir.x") for name in "abc"}


@pytest.mark.parametrize("verb", [copy_tree, sync_tree, move_tree])
@pytest.mark.parametrize(
    ("source", "target"), [("x/", "x/"), ("x/dir/", "x/"), ("x/", "x/dir/"), ("x/", "link/")]
)
def test_trees_that_overlap_are_refused(
    make_tree: MakeTree, tmp_path: Path, verb: object, source: str, target: str
) -> None:
    """Equal, one in the other, by a link: refused before any write, and nothing is touched."""
    root = make_tree("x", NINE)
    (tmp_path / "link").symlink_to(root)
    with pytest.raises(IsSameFile):
        verb(f"{tmp_path}/{source}", f"file://{tmp_path}/{target}")  # type: ignore[operator]
    assert files_of(root) == NINE


def test_a_source_inside_its_target_survives_a_sync(make_tree: MakeTree, tmp_path: Path) -> None:
    """With delete it is refused; without the refusal the source would be deleted."""
    root = make_tree("x", NINE)
    with pytest.raises(IsSameFile):
        sync_tree(f"{root}/dir/", f"{root}/", delete=True)
    assert files_of(root) == NINE


def test_an_exclude_that_takes_the_inner_tree_out_allows_it(make_tree: MakeTree) -> None:
    """The backup inside the source is left out of it, and stays as it is."""
    root = make_tree("x", {"a": b"1", "backup/old": b"2"})
    report = copy_tree(f"{root}/", f"{root}/backup/", exclude=["/backup/"])
    assert report.ok
    assert files_of(root) == {"a": b"1", "backup/old": b"2", "backup/a": b"1"}


def test_names_that_only_look_alike_do_not_overlap(make_tree: MakeTree, tmp_path: Path) -> None:
    """``x/a`` is not within ``x/ab``."""
    make_tree("x/a", {"one": b"1"})
    report = copy_tree(f"{tmp_path}/x/a/", f"{tmp_path}/x/ab/")
    assert report.totals.of("copied").objects == 1


@pytest.mark.parametrize("verb", [copy_tree, move_tree])
def test_an_object_is_never_moved_onto_itself(
    make_tree: MakeTree, s3: Operator, tree_bucket: S3Server, verb: object
) -> None:
    """Named by itself, by a file of names, by a pattern: refused, and it is still there."""
    root, options = make_tree("x", {"a": b"1", "old/b": b"2"}), s3_options(tree_bucket)
    s3.write("a", b"1")
    for base, given in ((f"{root}/", {}), (s3.location(""), options)):
        more = {"source_options": given, "target_options": given}
        for source, target, chosen in (
            (f"{base}a", base, {}),
            (base, base, {"files_from": ["a"]}),
            (f"{base}*", base, {}),
        ):
            with pytest.raises(IsSameFile):
                verb(source, target, compare="always", **chosen, **more)  # type: ignore[operator]
    assert files_of(root) == {"a": b"1", "old/b": b"2"}
    assert objects_of(s3) == {"a": b"1"}
    report = verb(f"{root}/a*", f"{root}/old/")  # type: ignore[operator]
    assert report.ok
    assert (root / "old" / "a").read_bytes() == b"1"


@pytest.mark.parametrize("verb", [copy_tree, move_tree])
@pytest.mark.parametrize("names", [["a", "old/a"], ["old/old/a", "old/a"]])
def test_a_named_path_never_goes_onto_another(
    make_tree: MakeTree, verb: object, names: list[str]
) -> None:
    """One tree lies in the other, and what is there is named too: it would be lost, unseen."""
    files = {"a": b"1", "old/a": b"2", "old/old/a": b"3", "old/old/old/a": b"4"}
    root = make_tree("x", files)
    for source, target in ((root, root / "old"), (root / "old", root)):
        with pytest.raises(IsSameFile, match="another of them"):
            verb(f"{source}/", f"{target}/", files_from=names)  # type: ignore[operator]
    assert files_of(root) == files


def test_overlaps_in_a_bucket_are_refused(s3: Operator, tree_bucket: S3Server) -> None:
    """By other prefixes, and by another name of the same server."""
    s3.write("x/dir/a", b"1")
    root = s3.location("")
    options = s3_options(tree_bucket)
    elsewhere = {**options, "endpoint_url": tree_bucket.endpoint.replace("127.0.0.1", "localhost")}
    pairs = (("x/", "x/"), ("x/", "x/dir/"), ("x/dir/", "x/"), ("x/", "x/not-yet/"))
    for source, target in pairs:
        for other in (options, elsewhere):
            with pytest.raises(IsSameFile):
                sync_tree(
                    f"{root}{source}",
                    f"{root}{target}",
                    delete=True,
                    source_options=options,
                    target_options=other,
                )
    assert objects_of(s3) == {"x/dir/a": b"1"}


def test_an_empty_source_deletes_nothing(make_tree: MakeTree) -> None:
    """Refused, unless --delete-all says that it is meant."""
    source, target = make_tree("empty", {}), make_tree("full", NINE)
    with pytest.raises(InvalidInput, match="nothing to copy"):
        sync_tree(f"{source}/", target, delete=True)
    with pytest.raises(InvalidInput, match="nothing to copy"):
        sync_tree(f"{make_tree('filtered', {'x': b''})}/", target, delete=True, exclude=["x"])
    assert files_of(target) == NINE
    report = sync_tree(f"{source}/", target, delete=True, delete_all=True)
    assert report.totals.of("deleted").objects == 9
    assert files_of(target) == {}


def test_a_source_that_is_not_there_is_not_found(
    make_tree: MakeTree, tmp_path: Path, s3: Operator, tree_bucket: S3Server
) -> None:
    """No folder, no key below a prefix, no bucket: NotFound, and the target is as it was."""
    target = make_tree("full", NINE)
    options = s3_options(tree_bucket)
    missing = [f"{tmp_path}/none/", f"{tmp_path}/none", f"{s3.location('')}none/"]
    for source in [*missing, f"{s3.location('')}none", "s3://no-such-bucket/a/"]:
        given = options if source.startswith("s3") else {}
        with pytest.raises(NotFound):
            sync_tree(source, target, delete=True, source_options=given)
    assert files_of(target) == NINE


def test_a_server_that_lists_folder_by_folder_loses_nothing(
    make_tree: MakeTree, s3: Operator
) -> None:
    """``dir/``, ``dir-2/``, ``dir.x/``, all up to date: ten runs copy and delete nothing."""
    source = make_tree("nine", NINE)
    assert copy_tree(f"{source}/", s3).totals.of("copied").objects == 9
    for _ in range(10):
        report = sync_tree(f"{source}/", s3, delete=True)
        assert report.ok
        assert (report.totals.of("copied").objects, report.totals.of("deleted").objects) == (0, 0)
    assert objects_of(s3) == NINE


def test_an_order_that_breaks_midway_forbids_deletes(
    make_tree: MakeTree, s3: Operator, tree_bucket: S3Server
) -> None:
    """A server that was not said to have an order of its own: an error, and nothing is deleted."""
    source = make_tree("nine", NINE)
    copy_tree(f"{source}/", s3)
    s3.write("zzz", b"only here")
    ordered = {**s3_options(tree_bucket), "key_order": True}
    report = sync_tree(f"{source}/", s3.location(""), delete=True, target_options=ordered)
    assert "order of keys" in report.error
    assert report.exit_code == 3
    assert objects_of(s3) == {**NINE, "zzz": b"only here"}


def test_a_listing_that_fails_forbids_deletes(make_tree: MakeTree) -> None:
    """An error on a later page: copies before it stand, deletes do not happen, and it is told."""
    target = make_tree("full", {**NINE, "zzz": b"only here"})
    memory = Operator.from_uri("memory://failing", page_size=4)
    for path, content in NINE.items():
        memory.write(path, content)
    broken = FaultInjection(Fault(verb="list", nth=3, times=99, error=Unexpected("page 3 is gone")))
    report = sync_tree(memory.layer(broken), target, delete=True)
    assert "page 3 is gone" in report.error
    assert report.no_deletes
    assert report.exit_code == 3
    assert (target / "zzz").exists()


def test_look_alike_prefixes_are_left_alone(s3: Operator, tmp_path: Path) -> None:
    """``a/`` takes nothing of ``ab/`` and ``a-``, on either side."""
    for key in ("a/1", "ab/2", "a-3"):
        s3.write(key, key.encode())
    other = Operator.from_uri("memory://alike")
    for key in ("a/old", "ab/2", "a.x"):
        other.write(key, b"")
    source = Operator.from_uri("memory://alike-source")
    source.write("1", b"one")
    report = sync_tree(source, "memory://alike/a/", delete=True)
    assert report.totals.of("deleted").objects == 1
    assert sorted(objects_of(other)) == ["a.x", "a/1", "ab/2"]


def test_deletes_are_bounded(make_tree: MakeTree) -> None:
    """Over --max-delete nothing goes at all; copies stand, and what would have gone is told."""
    many = {f"{number:03}": b"x" for number in range(120)}
    source = make_tree("source", dict.fromkeys(list(many)[:50], b"x") | {"new": b"n"})
    target = make_tree("target", many)
    report = sync_tree(f"{source}/", target, delete=True)
    assert report.exit_code == 3
    assert "--max-delete" in report.no_deletes
    assert report.totals.of("kept").objects == 70
    assert len(files_of(target)) == 121
    for bound in (69, "57%"):
        assert sync_tree(f"{source}/", target, delete=True, max_delete=bound).exit_code == 3
    report = sync_tree(f"{source}/", target, delete=True, max_delete=70)
    assert report.ok
    assert files_of(target) == files_of(source)


@pytest.mark.parametrize(
    ("there", "goes", "asked", "allowed"),
    [
        (100, 99, None, True),
        (101, 51, None, False),
        (102, 51, None, True),
        (100, 51, "50%", False),
        (100, 50, "50%", True),
    ],
)
def test_a_bound_that_nobody_chose_spares_small_trees(
    make_tree: MakeTree, there: int, goes: int, asked: str | None, allowed: bool
) -> None:
    """Of a hundred objects any share may go, of more a half and not one more; a share that was
    asked for counts for small ones, too, be it the same."""
    names = [f"{number:03}" for number in range(there)]
    source = make_tree("source", dict.fromkeys(names[goes:], b"x"))
    target = make_tree("target", dict.fromkeys(names, b"x"))
    bound = {} if asked is None else {"max_delete": asked}
    report = sync_tree(f"{source}/", target, delete=True, **bound)
    assert report.exit_code == (0 if allowed else 3)
    assert len(files_of(target)) == (there - goes if allowed else there)


def test_no_deletes_after_a_failed_copy(make_tree: MakeTree) -> None:
    """One object that cannot be copied: the rest is, nothing goes, exit 3."""
    source = Operator.from_uri("memory://failed-copy")
    for path in ("good", "a//b"):
        source.write(path, b"1")
    target = make_tree("target", {"old": b"0"})
    report = sync_tree(source, target, delete=True)
    assert report.exit_code == 3
    assert [row.path for row in report.problems] == ["a//b"]
    assert files_of(target) == {"good": b"1", "old": b"0"}
    assert report.kept == ["old"]


def test_keys_that_no_file_system_can_hold(tmp_path: Path) -> None:
    """Each is a failed entry with its reason; the rest arrives; nothing lies outside the root."""
    memory = Operator.from_uri("memory://odd-keys")
    good = {"a": b"1", "a-b": b"2", "c/d": b"3", "marker/x": b"4"}
    odd = ["a/b", "c//d", "x/./y", "n" * 256, "f/" + "n" * 256, "a/b/c", "ü" * 128]
    for path, content in good.items():
        memory.write(path, content)
    for path in odd:
        memory.write(path, b"odd")
    # An operator refuses such a path, but somebody else may have made the key.
    others = ["up/../../out", "bytes/", "nul\0key", f"t/.calque-{'0' * 24}.tmp"]
    for path in others:
        memory.service.write(path, [b"odd"], WriteOptions())
    target = tmp_path / "deep" / "target"
    foreseen = copy_tree(memory, target, dry_run=True)
    report = copy_tree(memory, target)
    assert files_of(target) == good
    failed = {row.path for row in report.problems}
    assert {row.path for row in foreseen.problems} == failed
    assert failed == {*odd, *others}
    assert all(row.why and row.error for row in report.problems)
    assert report.exit_code == 3
    assert sorted(each.name for each in tmp_path.iterdir() if each.name != "state") == ["deep"]


def test_names_that_no_key_can_have(make_tree: MakeTree) -> None:
    """Bytes that are no UTF-8, more than 1,024 of them: failed entries, and the rest goes on."""
    odd, long = os.fsdecode(b"caf\xe9"), "/".join(["n" * 250] * 4 + ["n" * 21])
    source = make_tree("source", {odd: b"1", long: b"2", long[:-1]: b"3"})
    memory = Operator.from_uri("memory://odd-names")
    for dry_run in (True, False):
        report = copy_tree(f"{source}/", memory, dry_run=dry_run)
        assert {row.path for row in report.problems} == {odd, long}
    assert objects_of(memory) == {long[:-1]: b"3"}
    assert report.exit_code == 3


def test_what_limits_leave_out_is_in_nobodys_way(tmp_path: Path) -> None:
    """``a`` is not taken, as it is empty: so ``a/b`` may be a file."""
    memory = Operator.from_uri("memory://left-out")
    memory.write("a", b"")
    memory.write("a/b", b"1")
    report = copy_tree(memory, tmp_path / "target", min_size=1)
    assert report.ok, report.problems
    assert files_of(tmp_path / "target") == {"a/b": b"1"}


def test_links_and_sockets_are_counted_and_never_followed_out(
    make_tree: MakeTree, tmp_path: Path
) -> None:
    """A link to a file inside is followed; out, dangling, to folders, pipes, sockets: skipped."""
    source = make_tree("source", {"file": b"1", "folder/inner": b"2"})
    (tmp_path / "secret").write_bytes(b"outside")
    (source / "inside").symlink_to("file")
    (source / "out").symlink_to(tmp_path / "secret")
    (source / "dangling").symlink_to("nowhere")
    (source / "loop").symlink_to("loop")
    (source / "to-folder").symlink_to("folder")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(source)  # the name of a socket may have some hundred bytes only
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        memory = Operator.from_uri("memory://links")
        report = copy_tree(f"{source}/", memory)
    assert report.totals.of("skipped").objects == 6
    assert report.ok
    assert objects_of(memory) == {"file": b"1", "folder/inner": b"2", "inside": b"1"}


@pytest.mark.parametrize("exclude", [[], ["f"]])
def test_what_the_source_has_and_is_no_file_is_not_deleted(
    make_tree: MakeTree, exclude: list[str]
) -> None:
    """A link that leads nowhere today, out, or to a folder, a pipe: skipped, and the file that was
    copied when it was one stays. It has one row."""
    source = make_tree("source", {"f": b"1", "d/g": b"2"})
    names = ("dangling", "out", "folder", "pipe")
    for name, leads_to in {"dangling": "x", "out": "/etc/passwd", "folder": "d"}.items():
        (source / name).symlink_to(leads_to)
    os.mkfifo(source / "pipe")
    target = make_tree("target", dict.fromkeys((*names, "f", "gone"), b"old"))
    for dry_run in (True, False):
        rows: list[Row] = []
        report = sync_tree(
            f"{source}/",
            target,
            delete=True,
            exclude=exclude,
            delete_excluded=bool(exclude),
            dry_run=dry_run,
            on_event=rows.append,
        )
        assert report.ok
        told = {row.path: row.outcome for row in rows}
        assert len(told) == len(rows)
        assert {told[name] for name in names} == {"skipped"}
        assert told["gone"] == "deleted"
        assert told["f"] == ("deleted" if exclude else "copied")
    assert files_of(target).items() >= dict.fromkeys(names, b"old").items()


@pytest.mark.parametrize(("links", "skipped"), [("follow", {"d", "nowhere", "/"}), ("keep", {""})])
@pytest.mark.parametrize("leads_to", ["d", "nowhere", "/", "f"])
def test_what_lies_behind_a_skipped_link_is_not_deleted(
    make_tree: MakeTree, links: Links, skipped: set[str], leads_to: str
) -> None:
    """A folder that was replaced by a link is there another day, whatever the link leads to. A link
    that is copied itself, or the file that it leads to, has nothing below it."""
    source = make_tree("source", {"f": b"1", "d/g": b"2"})
    memory = Operator.from_uri(f"memory://behind-{links}-{leads_to.strip('/')}")
    (source / "link").symlink_to(leads_to)
    old = {"link/g", "link/h", "link/below/g"}
    for path in old:
        memory.service.write(path, (b"old",), WriteOptions())
    assert sync_tree(f"{source}/", memory, delete=True, delete_all=True, links=links).ok
    assert objects_of(memory).keys() & old == (old if leads_to in skipped else set())


def test_odd_names_at_the_target_are_nobodys_else(make_tree: MakeTree) -> None:
    """``d//g`` is not the source's ``d/g``: it is deleted as any that the source lacks."""
    source, memory = make_tree("source", {"f": b"1", "d/g": b"2"}), Operator.from_uri("memory://o")
    for path in ("d//g", "./f", "d/../f", "../source/f", "f/"):
        memory.service.write(path, (b"old",), WriteOptions())
    assert sync_tree(f"{source}/", memory, delete=True).totals.of("deleted").objects == 5
    assert objects_of(memory) == {"f": b"1", "d/g": b"2"}


def test_names_that_a_server_changes_are_not_moved(s3: Operator) -> None:
    """``a//b`` and ``a/b`` are one object there, and one would take the place of the other: such
    names are tried first, and stay. A target that keeps them gets them all."""
    plain = {"a/b": b"1", "e/f": b"4444"}
    odd = {"a//b": b"22", "c\\d": b"333", "g/": b"55555", "h/./i": b"6"}
    memory = Operator.from_uri("memory://odd-names")
    for path, content in {**plain, **odd}.items():
        memory.service.write(path, (content,), WriteOptions())
    report = move_tree(memory, s3)
    assert {row.path for row in report.problems} == odd.keys()
    assert all("such a name" in row.why for row in report.problems)
    assert objects_of(s3) == plain
    assert {entry.path for entry in memory.list()} == odd.keys()
    kept = Operator.from_uri("memory://kept-names")
    assert move_tree(memory, kept).ok
    assert {entry.path for entry in kept.list()} == odd.keys()
    assert list(memory.list()) == []


def test_an_empty_object_with_an_odd_name_takes_no_others_place(s3: Operator) -> None:
    """``a//b`` without a byte would empty ``a/b`` there. A folder's marker goes along."""
    memory = Operator.from_uri("memory://odd-empty")
    for path, content in {"a/b": b"1", "a//b": b"", "c\\d": b"", "e/": b""}.items():
        memory.service.write(path, (content,), WriteOptions())
    report = move_tree(memory, s3)
    assert {row.path for row in report.problems} == {"a//b", "c\\d"}
    assert objects_of(s3).items() >= {"a/b": b"1"}.items()
    assert {entry.path for entry in memory.list()} == {"a//b", "c\\d"}


def test_names_of_two_unicode_forms_are_two(make_tree: MakeTree) -> None:
    """NFC and NFD stay apart."""
    names = {"caf\u00e9": b"nfc", "cafe\u0301": b"nfd"}
    source, target = make_tree("source", names), make_tree("target", {})
    assert copy_tree(f"{source}/", target).ok
    assert {name.name: name.read_bytes() for name in target.iterdir()} == names


def test_an_object_rewritten_since_it_was_listed_is_not_deleted(make_tree: MakeTree) -> None:
    """The delete is of what was listed; who writes meanwhile keeps his object."""
    source = make_tree("source", {"stays": b"1"})
    memory = Operator.from_uri("memory://rewritten")
    memory.write("gone", b"old")
    memory.write("stays", b"1")

    def meddle(count: int, size: int, names: object) -> bool:
        memory.write("gone", b"rewritten")
        return True

    request = TreeRequest(
        kind="sync", sources=[f"{source}/"], target=memory, options=TreeOptions(delete=True)
    )
    report = PreparedRun(request, confirm=meddle).run()
    assert [row.error for row in report.problems] == ["ConditionNotMatch"]
    assert memory.read("gone") == b"rewritten"


def test_folders_left_empty_go_and_others_stay(make_tree: MakeTree) -> None:
    """Only those that deletes have emptied; one that was empty before stays."""
    source = make_tree("source", {"keep": b"1"})
    target = make_tree("target", {"keep": b"1", "a/b/c": b"2", "d/e": b"3"})
    (target / "d" / "was-empty").mkdir()
    assert sync_tree(f"{source}/", target, delete=True).ok
    assert sorted(str(each.relative_to(target)) for each in target.rglob("*")) == [
        "d",
        "d/was-empty",
        "keep",
    ]


def test_a_folder_that_is_empty_at_the_source_stays(make_tree: MakeTree) -> None:
    """What a sync deletes may leave a folder as it is at the source: empty. It is not removed."""
    source = make_tree("source", {"f": b"1", "more/f": b"2"})
    (source / "empty" / "inner").mkdir(parents=True)
    names = ("empty/x", "empty/inner/x", "more/x", "gone/inner/x", "f")
    target = make_tree("target", dict.fromkeys(names, b"1"))
    assert sync_tree(f"{source}/", target, delete=True).totals.of("deleted").objects == 4
    folders = {str(each.relative_to(target)) for each in target.rglob("*") if each.is_dir()}
    assert folders == {"empty", "empty/inner", "more"}


def test_a_whole_bucket_is_not_emptied_by_a_name(s3: Operator, tree_bucket: S3Server) -> None:
    """``rm -r s3://bucket`` is refused; a folder of it goes, and nothing beside it."""
    for key in ("x/1", "x/2", "xy"):
        s3.write(key, b"1")
    with pytest.raises(InvalidInput, match="whole bucket"):
        remove_tree("s3://trees/", options=s3_options(tree_bucket))
    report = remove_tree(f"{s3.location('')}x", options=s3_options(tree_bucket))
    assert report.totals.of("deleted").objects == 2
    assert sorted(objects_of(s3)) == ["xy"]


def test_all_that_a_machine_has_is_not_deleted() -> None:
    """``rm -r /``, by a variable that was empty, say, is refused before anything is listed."""
    with pytest.raises(InvalidInput, match="whole file system"):
        remove_tree("/", dry_run=True)


def test_what_a_link_leads_to_is_not_deleted_by_its_name(
    make_tree: MakeTree, tmp_path: Path
) -> None:
    """``link`` is no folder to delete or to move; ``link/`` says that what it holds is meant."""
    real = make_tree("real", {"f": b"1"})
    (tmp_path / "link").symlink_to(real)
    with pytest.raises(InvalidInput, match="link to a folder"):
        remove_tree(f"{tmp_path}/link")
    with pytest.raises(InvalidInput, match="link to a folder"):
        move_tree(f"file://{tmp_path}/link", tmp_path / "target")
    assert files_of(real) == {"f": b"1"}
    assert remove_tree(f"{tmp_path}/link/").ok
    assert files_of(real) == {}


def test_a_run_that_was_stopped_deletes_nothing(make_tree: MakeTree) -> None:
    """It has not seen all: what would have gone is told as kept, with the reason; whoever resumes
    deletes it, and tells it once."""
    source = make_tree("source", {f"{number:02}": b"1" for number in range(40)})
    target = make_tree("target", {"gone": b"1", "gone too": b"1"})
    options = TreeOptions(delete=True, concurrent=1)
    report = source.parent / "report.jsonl"
    request = TreeRequest(
        kind="sync",
        sources=[f"{source}/"],
        target=str(target),
        options=options,
        report=str(report),
    )
    prepared: list[PreparedRun] = []
    prepared.append(PreparedRun(request, on_event=lambda row: prepared[0].stop()))
    stopped = prepared[0].run()
    assert (stopped.exit_code, stopped.no_deletes) == (130, "the run was stopped")
    assert {"gone", "gone too"} <= files_of(target).keys()
    assert PreparedRun(request).run().ok
    assert files_of(target) == files_of(source)
    rows = sorted((row.path, row.outcome) for row in read_report(report))
    assert rows == [
        *((path, "copied") for path in sorted(files_of(source))),
        ("gone", "deleted"),
        ("gone too", "deleted"),
    ]


@pytest.mark.parametrize("emptied", [True, False])
def test_a_run_that_is_resumed_is_bound_as_any_other(make_tree: MakeTree, emptied: bool) -> None:
    """Its source has become empty since; or more than half of the target would go, of which it has
    seen some twice: nothing is deleted."""
    names = [f"{number:03}" for number in range(130)]
    source = make_tree("source", dict.fromkeys(names[70:], b"new"))
    target = make_tree("target", dict.fromkeys(names, b"x"))
    request = TreeRequest(
        kind="sync",
        sources=[f"{source}/"],
        target=str(target),
        options=TreeOptions(delete=True, concurrent=1, fsync="each"),
    )
    prepared: list[PreparedRun] = []
    prepared.append(PreparedRun(request, on_event=lambda row: prepared[0].stop()))
    assert prepared[0].run().stopped
    if emptied:
        for name in names[70:]:
            (source / name).unlink()
    report = PreparedRun(request).run()
    assert report.resumed
    assert report.exit_code == 3
    assert ("nothing to copy" in report.error) if emptied else ("--max-delete" in report.no_deletes)
    assert files_of(target).keys() == set(names)
