"""Names in a file: lines or NULs, and what is no name."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from calque.errors import InvalidInput, NotFound
from calque.transfer.request.names_file import read_names


def test_lines(tmp_path: Path) -> None:
    """A line is a path; empty ones and repeated ones count for nothing, whatever ends them."""
    file = tmp_path / "names"
    file.write_bytes(b"a/b\r\n./c\n\n\nc\n d \nno\xff\n")
    assert read_names(file) == ("a/b", "c", " d ", "no\udcff")


def test_nuls(tmp_path: Path) -> None:
    """Between NULs a name may hold line breaks."""
    file = tmp_path / "names"
    file.write_bytes(b"a\nb\0c\0")
    assert read_names(file, nul=True) == ("a\nb", "c")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """``-`` reads what is piped in."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"x\ny")))
    assert read_names("-") == ("x", "y")


@pytest.mark.parametrize("text", [b"", b"\n\n", b"/etc/passwd\n", b"a/../../b\n", b".."])
def test_refused(tmp_path: Path, text: bytes) -> None:
    """Nothing, absolute paths and ways out of the source are refused, with the line's number."""
    file = tmp_path / "names"
    file.write_bytes(text)
    with pytest.raises(InvalidInput, match="names"):
        read_names(file)


def test_missing(tmp_path: Path) -> None:
    """A file that is not there is told by name."""
    with pytest.raises(NotFound, match="nowhere"):
        read_names(tmp_path / "nowhere")
