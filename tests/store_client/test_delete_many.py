"""Many keys deleted at once, as a client sees it."""

from __future__ import annotations

import os

import pytest

from calque.errors import ConditionNotMatch, InvalidInput, NotFound, PermissionDenied
from calque.store.uplink.encryption.access import Prefix
from tests.store_client.world import BUCKET, OTHER, SEGMENT, World


def test_each_key_has_its_answer(world: World) -> None:
    """Gone, never there, kept by its condition, not a key at all; copies elsewhere stay whole."""
    project, content = world.project, os.urandom(2 * SEGMENT)
    first = project.upload(BUCKET, "a/1", content)
    kept = project.upload(BUCKET, "kept", b"x")
    project.copy_object(BUCKET, "a/1", OTHER, "copy")
    answers = project.delete_objects(
        BUCKET, {"a/1": first.etag, "missing": None, "kept": first.etag, "": None, "k" * 2000: None}
    )
    assert [(each.deleted, type(each.error)) for each in answers] == [
        (True, type(None)),
        (False, type(None)),
        (False, ConditionNotMatch),
        (False, InvalidInput),
        (False, InvalidInput),
    ]
    assert world.keys() == ["kept"]
    assert project.stat(BUCKET, "kept") == kept
    assert project.download(OTHER, "copy").read() == content


def test_more_than_one_call_takes(plain_world: World) -> None:
    """1,001 keys are several transactions and one list of answers; of none there is none."""
    project = plain_world.project
    project.upload(BUCKET, "k1000", b"x")
    answers = project.delete_objects(BUCKET, [f"k{number}" for number in range(1001)])
    assert [each.key for each in answers if each.deleted] == ["k1000"]
    assert len(answers) == 1001
    assert project.delete_objects(BUCKET, []) == []
    with pytest.raises(NotFound, match="nowhere"):
        project.delete_objects("nowhere", ["k"])


def test_a_key_out_of_reach_is_no_hindrance(plain_world: World) -> None:
    """Of a grant for one prefix, that lacks the others by name and by key: those are denied."""
    for key in ("mine/a", "theirs/b"):
        plain_world.project.upload(BUCKET, key, b"x")
    grant = plain_world.project.access.restrict(Prefix(BUCKET, "mine/"))
    project = plain_world.through(grant)
    mine, theirs = project.delete_objects(BUCKET, ["mine/a", "theirs/b"])
    assert (mine.deleted, mine.error) == (True, None)
    assert isinstance(theirs.error, PermissionDenied)
    reader = plain_world.through(plain_world.project.access.restrict(delete=False))
    (answer,) = reader.delete_objects(BUCKET, ["theirs/b"])
    assert isinstance(answer.error, PermissionDenied)
    assert plain_world.keys() == ["theirs/b"]
