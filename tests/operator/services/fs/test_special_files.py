"""Pipes, devices and what stands for them are never replaced or deleted.

Tried on nodes of our own, never on those of ``/dev``: a guard that fails must not harm the machine.
"""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Callable
from pathlib import Path

import pytest

from calque.errors import CalqueError, IsADirectory, Unsupported
from calque.operator import Operator
from calque.operator.service import Renaming
from tests.operator.services.fs.conftest import names

Verb = Callable[[Operator, str], object]


def _rename(op: Operator, target: str) -> object:
    assert isinstance(op.service, Renaming)
    return op.service.rename(op.stat("from"), target, into=op.service)


VERBS: dict[str, Verb] = {
    "copy": lambda op, target: op.copy("from", target),
    "copy if new": lambda op, target: op.copy("from", target, if_not_exists=True),
    "write": lambda op, target: op.write(target, b"new"),
    "rename": _rename,
}


def _make(folder: Path, kind: str) -> type[CalqueError]:
    """Something special named ``target``; the error that its replacement must raise."""
    target = folder / "target"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "device":
        try:
            os.mknod(target, modes.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
    elif kind == "link to a pipe":
        os.mkfifo(folder / "pipe")
        target.symlink_to("pipe")
    elif kind == "directory":
        target.mkdir()
        return IsADirectory
    else:
        (folder / "directory").mkdir()
        target.symlink_to("directory")
        return IsADirectory
    return Unsupported


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "kind", ["pipe", "device", "directory", "link to a pipe", "link to a directory"]
)
def test_it_is_not_replaced(op: Operator, folder: Path, kind: str, verb: str) -> None:
    """`cp x /dev/null` by root must not make /dev/null a file: refused, nothing is left."""
    op.write("from", b"data")
    refused = _make(folder, kind)
    before, found = os.lstat(folder / "target"), names(folder)
    with pytest.raises(refused, match="target"):
        VERBS[verb](op, "target")
    assert os.path.samestat(os.lstat(folder / "target"), before)
    assert names(folder) == found
    assert op.read("from") == b"data"


def test_it_is_not_deleted(op: Operator, folder: Path) -> None:
    """A pipe is no object; a link to one is a name like others."""
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("pipe")
    with pytest.raises(Unsupported, match="pipe"):
        op.delete("pipe")
    op.delete("link")
    assert names(folder) == ["pipe"]


def test_symlinks_go_with_their_directory(tmp_path: Path) -> None:
    """Links that no listing shows are removed with the rest, and nothing of what they name."""
    (tmp_path / "root" / "t" / "deep").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"kept")
    op = Operator.from_uri(str(tmp_path / "root"))
    op.write("kept/x", b"x")
    op.write("t/file", b"x")
    folder = tmp_path / "root" / "t"
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    (folder / "deep" / "directory").symlink_to("../../kept")
    (folder / "deep" / "out").symlink_to(outside)
    (folder / "file link").symlink_to("../kept/x")
    assert op.remove_all("t") == 2
    assert names(tmp_path / "root") == ["kept"]
    assert op.read("kept/x") == b"x"
    assert (outside / "kept").read_bytes() == b"kept"


@pytest.mark.parametrize("leads_to", ["nowhere", "kept", "link"])
def test_a_symlink_itself_is_removed(tmp_path: Path, leads_to: str) -> None:
    """As ``rm -r`` removes the link that it is given."""
    op = Operator.from_uri(str(tmp_path))
    op.write("kept/x", b"x")
    (tmp_path / "link").symlink_to(leads_to)
    op.remove_all("link")
    assert names(tmp_path) == ["kept"]
    assert op.read("kept/x") == b"x"


def test_what_is_no_file_of_ours_stays(tmp_path: Path) -> None:
    """A pipe is not removed, and so neither is its directory."""
    op = Operator.from_uri(str(tmp_path))
    op.write("t/x", b"x")
    os.mkfifo(tmp_path / "t" / "pipe")
    assert op.remove_all("t/") == 1
    assert names(tmp_path / "t") == ["pipe"]
