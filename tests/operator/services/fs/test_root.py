"""No path leaves the root, whoever puts symlinks where."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calque.errors import InvalidInput, IsADirectory, NotFound, PathEscape
from calque.operator import Operator
from calque.operator.services.fs import syscalls
from calque.operator.services.fs.root import Root, walk_beneath


@pytest.fixture(params=["openat2", "walking"], autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here holds on older kernels too, where paths are walked step by step."""
    if request.param == "walking":
        monkeypatch.setattr(syscalls, "has_open_beneath", lambda: False)
    elif not syscalls.has_open_beneath():
        pytest.skip("this kernel has no openat2")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the root, with a secret in it."""
    made = tmp_path / "outside"
    made.mkdir()
    (made / "secret").write_text("secret")
    return made


@pytest.mark.parametrize("path", ["../outside/secret", "a/../../outside/secret", "..", "/../x"])
def test_dots_cannot_climb_out(op: Operator, outside: Path, path: str) -> None:
    """``..`` is refused before anything is opened."""
    for verb in (op.stat, op.read, op.delete, lambda each: op.write(each, b"x")):
        with pytest.raises(PathEscape):
            verb(path)


LINKS: list[Callable[[Path, Path], str]] = [
    lambda root, out: _link(root / "file", "../outside/secret") or "file",
    lambda root, out: _link(root / "file", str(out / "secret")) or "file",
    lambda root, out: _link(root / "dir", "../outside") or "dir/secret",
    lambda root, out: _link(root / "dir", str(out)) or "dir/secret",
    lambda root, out: (
        _link(root / "one", "two") or _link(root / "two", "../outside") or "one/secret"
    ),
]


def _link(path: Path, target: str) -> None:
    path.symlink_to(target)


@pytest.mark.parametrize("make", LINKS)
def test_symlinks_cannot_lead_out(
    op: Operator, folder: Path, outside: Path, make: Callable[[Path, Path], str]
) -> None:
    """Reading, writing, deleting, copying through such a link are refused; nothing is touched."""
    path = make(folder, outside)
    op.write("mine", b"mine")
    with pytest.raises(PathEscape):
        op.stat(path)
    with pytest.raises(PathEscape):
        op.read(path)
    with pytest.raises(PathEscape):
        op.copy(path, "stolen")
    if "/" in path:
        for verb in (op.delete, lambda each: op.write(each, b"x"), lambda to: op.copy("mine", to)):
            with pytest.raises(PathEscape):
                verb(path)
    assert (outside / "secret").read_text() == "secret"
    assert os.listdir(outside) == ["secret"]
    assert path not in [entry.path for entry in op.list()]
    assert not op.exists("stolen")


def test_a_link_that_leads_out_is_replaced_not_followed(
    op: Operator, folder: Path, outside: Path
) -> None:
    """Writing to the link's own name makes a plain file of it; where it pointed is untouched."""
    (folder / "x").symlink_to(outside / "secret")
    op.write("x", b"new")
    assert (outside / "secret").read_text() == "secret"
    assert not (folder / "x").is_symlink()
    assert op.read("x") == b"new"


def test_links_inside_the_root_work(op: Operator, folder: Path) -> None:
    """A relative link that stays inside is as good as the file."""
    op.write("data/v2/part", b"v2")
    (folder / "current").symlink_to("data/v2")
    (folder / "part").symlink_to("current/part")
    assert op.read("current/part") == b"v2"
    assert op.read("part") == b"v2"
    assert op.stat("part").size == 2


def test_absolute_links_inside_the_root_work(folder: Path, tmp_path: Path) -> None:
    """By the name that the root is opened with, or its real one; a chain of both kinds too."""
    (folder / "data" / "v2").mkdir(parents=True)
    (folder / "data" / "v2" / "part").write_bytes(b"v2")
    (tmp_path / "alias").symlink_to(folder)
    (folder / "real").symlink_to(folder / "data" / "v2" / "part")
    (folder / "current").symlink_to(tmp_path / "alias" / "data" / "v2")
    (folder / "data" / "chain").symlink_to("../current/part")
    op = Operator.from_uri(tmp_path / "alias")
    assert [op.read(path) for path in ("real", "current/part", "data/chain")] == [b"v2"] * 3
    assert {entry.path for entry in op.list()} == {"data/chain", "data/v2/part", "real"}
    op.write("current/part", b"v3")
    assert op.read("real") == b"v3"


@pytest.mark.parametrize("text", ["{root}/../outside/secret", "{root}-2/secret", "//{root}/x"])
def test_absolute_links_that_only_begin_with_the_root_lead_out(
    op: Operator, folder: Path, outside: Path, text: str
) -> None:
    """One that goes up again, one beside it with a longer name: refused as any other."""
    (folder.parent / f"{folder.name}-2").symlink_to(outside)
    (folder / "link").symlink_to(text.format(root=folder))
    with pytest.raises(PathEscape):
        op.read("link")
    assert list(op.list()) == []


def test_looping_links_are_refused(op: Operator, folder: Path) -> None:
    """A loop is an error of the path, not an endless walk."""
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    with pytest.raises(InvalidInput, match="symlinks"):
        op.stat("a")
    assert list(op.list()) == []


def test_the_whole_file_system_follows_absolute_links(tmp_path: Path) -> None:
    """At the root ``/`` nothing lies outside, so absolute links work as the system has them."""
    (tmp_path / "file").write_text("here")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    op = Operator.from_uri("fs:///")
    assert op.read(f"{tmp_path}/link".lstrip("/")) == b"here"


def test_a_folder_swapped_for_a_link_meanwhile(op: Operator, folder: Path, outside: Path) -> None:
    """Whatever moment somebody chooses to swap a directory, no byte gets out of the root."""
    stop = threading.Event()
    evil, place = folder / "evil", folder / "dir"
    place.mkdir()
    evil.symlink_to(outside)
    libc = ctypes.CDLL(None)
    exchange = (-100, os.fsencode(place), -100, os.fsencode(evil), 2)  # AT_FDCWD, RENAME_EXCHANGE

    def swap() -> None:
        while not stop.is_set():
            libc.renameat2(*exchange)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        refused = 0
        for _ in range(300):
            try:
                op.write("dir/secret", b"overwritten")
                op.delete("dir/secret")
            except InvalidInput:  # PathEscape, or caught between looking and opening
                refused += 1
        assert refused, "the swap was never met"
    finally:
        stop.set()
        thread.join()
    assert (outside / "secret").read_text() == "secret"
    assert os.listdir(outside) == ["secret"]


def test_names_no_file_can_have(op: Operator, folder: Path) -> None:
    """NUL, names over 255 bytes and our own marker: clear errors, nothing written."""
    with pytest.raises(InvalidInput, match="NUL"):
        op.write("a\0b", b"x")
    with pytest.raises(InvalidInput, match="too long"):
        op.write("x" * 256, b"x")
    with pytest.raises(InvalidInput, match="temporary"):
        op.write(f".calque-{'0' * 24}.tmp", b"x")
    with pytest.raises(InvalidInput, match="temporary"):
        op.write(f"deep/.calque-{'0' * 24}-name.tmp", b"x")
    assert os.listdir(folder) == []


def test_the_longest_name_works(op: Operator, folder: Path) -> None:
    """255 bytes are legal, so the temporary file must find a shorter name."""
    op.write("ü" * 127, b"x")
    op.copy("ü" * 127, "é" * 127)
    op.copy("ü" * 127, "y" * 255, if_not_exists=True)
    assert sorted(os.listdir(folder)) == sorted(["ü" * 127, "é" * 127, "y" * 255])


def test_a_directory_is_no_file(op: Operator) -> None:
    """Each verb says so; nothing is replaced."""
    op.write("d/x", b"x")
    for verb in (op.stat, op.read, op.delete, lambda each: op.write(each, b"y")):
        with pytest.raises(IsADirectory):
            verb("d")
    with pytest.raises(IsADirectory):
        op.copy("d/x", "d")
    with pytest.raises(IsADirectory):
        op.copy("d", "e")


def test_nothing_lies_under_a_file(op: Operator) -> None:
    """Looking there finds nothing; writing there is refused with the reason."""
    op.write("f", b"x")
    with pytest.raises(NotFound):
        op.stat("f/x")
    with pytest.raises(NotFound):
        op.read("f/x")
    with pytest.raises(InvalidInput, match="under a file"):
        op.write("f/x", b"y")
    op.delete("f/x")
    assert list(op.list("f/")) == []


@pytest.mark.parametrize(
    ("path", "key"),
    [("a", "a"), ("a//b", "a/b"), ("./a", "a"), ("a/./b", "a/b"), ("/a", "a"), ("a/../b", "b")],
)
def test_one_spelling(path: str, key: str) -> None:
    """Every spelling of a path is the same key."""
    assert Root("/r").key(path) == key


NAMES = ("a", "b", "c")
REFUSALS = (errno.ENOENT, errno.EXDEV, errno.ELOOP, errno.ENOTDIR)
TARGETS = ("a", "b", "../a", "..", ".", "../..", "/", "a/b", "../../x", "./b/.", "missing")


@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    links=st.dictionaries(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(tuple),
        st.sampled_from(TARGETS),
        max_size=4,
    ),
    path=st.lists(st.sampled_from((*NAMES, "..", ".")), min_size=1, max_size=5),
    flags=st.sampled_from((os.O_PATH, os.O_RDONLY, os.O_RDONLY | os.O_DIRECTORY)),
    follow=st.sampled_from((0, os.O_NOFOLLOW)),
)
def test_walking_agrees_with_the_kernel(
    kernel: None,
    tmp_path_factory: pytest.TempPathFactory,
    links: dict[tuple[str, ...], str],
    path: list[str],
    flags: int,
    follow: int,
) -> None:
    """What older kernels get by walking is what openat2 answers: the same file or a refusal."""
    root = tmp_path_factory.mktemp("walk")
    for steps, target in links.items():
        above = root.joinpath(*steps[:-1])
        if any(root.joinpath(*steps[:count]).is_symlink() for count in range(1, len(steps))):
            continue  # nothing is made through a link: it may lead out of the test's own folder
        try:
            above.mkdir(parents=True, exist_ok=True)
            (above / steps[-1]).symlink_to(target)
        except OSError:
            continue
    descriptor = os.open(root, os.O_PATH)
    try:
        one = _attempt(syscalls.open_beneath, descriptor, "/".join(path), flags | follow)
        other = _attempt(walk_beneath, descriptor, "/".join(path), flags | follow)
    finally:
        os.close(descriptor)
    assert one == other


def _attempt(way: Callable[[int, str, int], int], root: int, path: str, flags: int) -> object:
    try:
        descriptor = way(root, path, flags)
    except OSError as error:
        return "refused" if error.errno in REFUSALS else error
    try:
        found = os.fstat(descriptor)
        return found.st_dev, found.st_ino
    finally:
        os.close(descriptor)
