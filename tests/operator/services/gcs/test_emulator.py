"""Happy paths against somebody else's emulator."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.operator import Operator
from tests.servers.gcs_emulator import gcs_emulator


@pytest.fixture(scope="module")
def op(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """A root in an emulator's bucket, found by the variable that Google's clients know."""
    work: Path = tmp_path_factory.mktemp("emulator")
    with gcs_emulator(work, "first", "second") as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", endpoint)
        yield Operator.from_uri("gs://first/root")


def test_write_read_stat_list_delete(op: Operator) -> None:
    """The verbs, one after another."""
    made = op.write("a/b c+ü", b"hello", content_type="text/x", user={"k": "v"})
    found = op.stat("a/b c+ü")
    assert (found.size, found.content_type, dict(found.user)) == (5, "text/x", {"k": "v"})
    assert found.etag == made.etag
    assert op.read("a/b c+ü") == b"hello"
    assert op.read("a/b c+ü", offset=1, length=3) == b"ell"
    op.write("z", b"")
    assert [entry.path for entry in op.list()] == ["a/b c+ü", "z"]
    assert [entry.path for entry in op.list(recursive=False)] == ["a/", "z"]
    op.delete("z")
    assert not op.exists("z")
    op.delete("z")


def test_a_session(op: Operator) -> None:
    """A write of several pieces."""
    data = bytes(9 * 1024 * 1024)
    assert op.write("big", iter([data, b"tail"])).size == len(data) + 4
    assert op.read("big")[-5:] == b"\0tail"


def test_copies(op: Operator) -> None:
    """Within a bucket and to another; checksums are compared."""
    op.write("from", b"bytes", user={"k": "v"})
    made = op.copy("from", "to")
    assert (op.read("to"), dict(made.user)) == (b"bytes", {"k": "v"})
    second = Operator.from_uri("gs://second")
    assert list(op.copier("from", "to", into=second)) == [5]
    assert second.read("to") == b"bytes"
