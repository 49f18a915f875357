"""Opening, pickling, durability, renames, and the table of errors."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pytest

from calque.errors import ConditionNotMatch, InvalidInput, IsSameFile, NotFound, Unsupported
from calque.operator import Operator
from calque.operator.services.fs import FsService
from calque.operator.services.fs.errors import TABLE, translate


def test_it_pickles(op: Operator) -> None:
    """An operator works the same where it is unpickled."""
    op.write("x", b"1")
    assert pickle.loads(pickle.dumps(op)).read("x") == b"1"


def test_the_root_is_made_when_it_is_needed(tmp_path: Path) -> None:
    """A root that is not there reads as empty and comes with the first write."""
    op = Operator.from_uri(str(tmp_path / "not" / "yet"))
    with pytest.raises(NotFound):
        op.stat("x")
    op.write("a/b", b"1")
    assert (tmp_path / "not" / "yet" / "a" / "b").read_bytes() == b"1"


def test_uris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """URIs, absolute and relative paths open the same folder."""
    monkeypatch.chdir(tmp_path)
    for uri in (f"fs://{tmp_path}/r", f"file://{tmp_path}/r", f"{tmp_path}/r", "r", "./r/"):
        assert Operator.from_uri(uri).location("x") == f"file://{tmp_path}/r/x", uri


def test_wrong_uris() -> None:
    """A host or an unknown option is refused, with what would be right."""
    with pytest.raises(InvalidInput, match="three slashes"):
        Operator.from_uri("file://etc/passwd")
    with pytest.raises(InvalidInput, match="durable"):
        Operator.from_uri("fs:///x?color=red")
    with pytest.raises(InvalidInput, match="true or false"):
        Operator.from_uri("fs:///x?durable=maybe")


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", "a/b"),
        ("fs:///a/b", "a/b"),
        ("file://localhost/a/b", "a/b"),
        ("/a//b/./c", "a/b/c"),
        ("/a/../b", "b"),
        ("/a/b/", "a/b/"),
        ("/a/..", ""),
        ("/what?is#this%20", "what?is#this%20"),
    ],
)
def test_locations(location: str, path: str) -> None:
    """A location is the whole file system and a path in it, taken literally."""
    operator, found = Operator.locate(location)
    assert operator.location("") == "file:///"
    assert found == path


def test_relative_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed is meant from the working directory."""
    monkeypatch.chdir(tmp_path)
    inside = str(tmp_path).lstrip("/")
    assert Operator.locate("x")[1] == f"{inside}/x"
    assert Operator.locate("./x/")[1] == f"{inside}/x/"
    assert Operator.locate(".")[1] == f"{inside}/"
    assert Operator.locate("../x")[1] == f"{inside.rpartition('/')[0]}/x"


SYNCING = {
    "write": lambda op: op.write("new/deep/x", b"1"),
    "copy": lambda op: op.copy("from", "new/deep/x"),
}


@pytest.mark.parametrize("verb", SYNCING)
def test_what_returned_is_on_the_disk(
    folder: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file before its name, then its folder, and every folder that was made on the way."""
    op = Operator.from_uri(str(folder))
    op.write("from", b"1")
    events: list[str] = []
    real_sync, real_rename = os.fsync, os.rename

    def sync(descriptor: int) -> None:
        events.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        real_sync(descriptor)

    def rename(*names: str, **directories: int) -> None:
        events.append("rename")
        real_rename(*names, **directories)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "rename", rename)
    SYNCING[verb](op)
    events = ["temporary" if name.startswith(".calque-") else name for name in events]
    assert events == ["root", "new", "temporary", "rename", "deep"]


def test_durable_may_be_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``durable=False`` never waits for the disk."""
    op = Operator.from_uri(str(folder), durable=False)

    def never(_: int) -> None:
        raise AssertionError("synced")

    monkeypatch.setattr(os, "fsync", never)
    monkeypatch.setattr(os, "fdatasync", never)
    op.write("a/x", b"1")
    op.copy("a/x", "b/y")
    op.delete("a/x")
    assert op.read("b/y") == b"1"


def _service(op: Operator) -> FsService:
    assert isinstance(op.service, FsService)
    return op.service


def test_rename(op: Operator, folder: Path) -> None:
    """One moment, parents made, the same inode, the source gone."""
    op.write("a/x", b"1")
    inode = os.stat(folder / "a/x").st_ino
    made = _service(op).rename(op.stat("a/x"), "b/c/y", into=_service(op))
    assert made == op.stat("b/c/y")
    assert os.stat(folder / "b/c/y").st_ino == inode
    assert not op.exists("a/x")


def test_rename_between_roots(op: Operator, folder: Path) -> None:
    """The target may lie under another root; another service is Unsupported."""
    op.write("a/x", b"1")
    with Operator.from_uri(str(folder / "b")) as other:
        made = _service(op).rename(op.stat("a/x"), "y", into=_service(other))
        assert made == other.stat("y")
        assert op.read("b/y") == b"1"
    with Operator.from_uri("memory://") as memory, pytest.raises(Unsupported):
        _service(op).rename(op.stat("b/y"), "y", into=memory.service)


def test_rename_conditions(op: Operator, folder: Path) -> None:
    """A taken name, a changed source and one file under two names are refused; nothing is lost."""
    op.write("x", b"x")
    op.write("y", b"y")
    with pytest.raises(ConditionNotMatch, match="exists"):
        _service(op).rename(op.stat("x"), "y", if_not_exists=True, into=_service(op))
    old = op.stat("x")
    op.write("x", b"changed")
    with pytest.raises(ConditionNotMatch, match="changed"):
        _service(op).rename(old, "z", into=_service(op))
    os.link(folder / "x", folder / "hard")
    with pytest.raises(IsSameFile):
        _service(op).rename(op.stat("x"), "hard", into=_service(op))
    (folder / "soft").symlink_to("x")
    with pytest.raises(Unsupported):
        _service(op).rename(op.stat("soft"), "moved", into=_service(op))
    assert sorted(os.listdir(folder)) == ["hard", "soft", "x", "y"]


KNOWN = [
    *("EACCES", "EAGAIN", "EBUSY", "EDQUOT", "EEXIST", "EFBIG", "EINVAL", "EIO", "EISDIR", "ELOOP"),
    *("EMFILE", "EMLINK", "ENAMETOOLONG", "ENFILE", "ENODEV", "ENOENT", "ENOLCK", "ENOMEM"),
    *("ENOSPC", "ENOSYS", "ENOTDIR", "ENOTEMPTY", "ENXIO", "EOPNOTSUPP", "EOVERFLOW", "EPERM"),
    *("EROFS", "ESTALE", "ETIMEDOUT", "ETXTBSY", "EXDEV", "EILSEQ", "EHOSTDOWN"),
]
"""Every errno that the manual pages name for the calls we make, bugs of ours (EBADF, EFAULT) aside,
and those that network file systems add."""


@pytest.mark.parametrize("name", KNOWN)
def test_no_known_errno_is_unmapped(name: str) -> None:
    """Each becomes an error of its own that names the file."""
    number = getattr(errno, name)
    assert number in TABLE
    error = translate(OSError(number, os.strerror(number)), "/the/file")
    assert "'/the/file'" in str(error)
    assert type(error).__name__ != "Unexpected"


def test_every_table_entry_is_known() -> None:
    """The table holds nothing that the list above does not explain."""
    assert set(TABLE) == {getattr(errno, name) for name in KNOWN}


def test_an_unknown_errno_is_told_as_it_is() -> None:
    """What nobody planned for keeps the system's own words."""
    assert "exec format" in str(translate(OSError(errno.ENOEXEC, "x"), "/f")).lower()
