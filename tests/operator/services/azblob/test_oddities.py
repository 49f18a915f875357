"""Where Azure is unlike the others: one behaviour on both sides of the threshold, or a clear no."""

from __future__ import annotations

import base64

import pytest
from azure.storage.blob import BlobBlock

from calque.errors import ConditionNotMatch, InvalidInput, PermissionDenied
from calque.operator import Operator
from calque.operator.services.azblob.blocks import Block, new_write
from calque.values import MIB
from tests.operator.behaviour.case import content
from tests.operator.services.azblob.conftest import THRESHOLD, Account
from tests.servers.proxy import Fault, FaultProxy, Reply

SIZES = [10, 3 * THRESHOLD]


@pytest.mark.parametrize("size", SIZES)
def test_names_of_metadata_that_differ_only_in_case(op: Operator, size: int) -> None:
    """Azure would keep one of them: refused, before anything is written."""
    with pytest.raises(InvalidInput, match="'name' and 'Name'"):
        op.write("x", content(size), user={"name": "1", "Name": "2"})
    assert not op.exists("x")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("conditional", [False, True])
def test_the_case_of_names_is_kept(
    op: Operator, account: Account, size: int, conditional: bool
) -> None:
    """By writes, stats, listings, and copies of every size."""
    user = {"CamelCase": "1", "plain": "2"}
    op.write("x", content(size), user=user)
    op.copy("x", "y", if_not_exists=conditional)
    for name in ("x", "y"):
        assert op.stat(name).user == user
        kept = account.client().get_blob_client(name).get_blob_properties().metadata
        assert kept.items() >= user.items()
    assert [entry.user for entry in op.list()] == [user, user]


@pytest.mark.parametrize("path", ["a/./b", "./a", "a/."])
def test_segments_that_azure_would_drop(op: Operator, path: str) -> None:
    """They would name another blob."""
    op.write("a/b", b"other")
    for use in (
        lambda: op.write(path, b"x"),
        lambda: op.read(path),
        lambda: op.stat(path),
        lambda: op.delete(path),
        lambda: op.copy("a/b", path),
    ):
        with pytest.raises(InvalidInput, match="segment"):
            use()
    assert op.read("a/b") == b"other"


def test_blocks_of_another_id_length(op: Operator, account: Account) -> None:
    """Another writer's blocks stand in the way of ours: said so, and left where they are."""
    source = content(3 * THRESHOLD)
    op.write("from", source)
    theirs = account.client().get_blob_client("to")
    theirs.stage_block("short", b"theirs")
    with pytest.raises(ConditionNotMatch, match="uncommitted blocks of another writer"):
        op.copy("from", "to")
    with pytest.raises(ConditionNotMatch, match="uncommitted blocks of another writer"):
        op.write("to", content(17 * MIB))
    theirs.commit_block_list([BlobBlock("short")])
    assert op.read("to") == b"theirs"
    op.copy("from", "to")
    assert op.read("to") == source


def test_a_sweep_goes_on_after_what_it_may_not_read(
    op: Operator, shaky: Operator, account: Account, proxy: FaultProxy
) -> None:
    """All that can be read is found; then what could not is told."""
    for name in ("a", "b", "c"):
        client = account.client().get_blob_client(name)
        # Microsoft's client encodes the id by itself.
        client.stage_block(base64.b64decode(Block(new_write(), 1).id).decode(), b"left")
    denied = Reply(403, {"x-ms-error-code": "AuthorizationPermissionMismatch"})
    proxy.add(Fault(contains="/a?comp=blocklist", times=None, reply=denied))
    found: list[str] = []
    with pytest.raises(PermissionDenied):
        _gather(shaky, found)
    assert found == ["b", "c"]


def _gather(op: Operator, found: list[str]) -> None:
    for left in op.leftovers():
        found.append(left.location[-1])  # noqa: PERF401 - kept when it breaks off
