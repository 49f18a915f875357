"""Copies and moves by the names of their arguments."""

from __future__ import annotations

from tests.store_client.world import BUCKET, OTHER, World


def test_arguments_by_name(plain_world: World) -> None:
    """Old and new places can be named in any order, for copies and for moves."""
    project = plain_world.project
    project.upload(BUCKET, "a", b"body")
    copied = project.copy_object(new_key="b", old_key="a", new_bucket=OTHER, old_bucket=BUCKET)
    moved = project.move_object(new_key="c", old_key="b", new_bucket=BUCKET, old_bucket=OTHER)
    assert (copied.bucket, copied.key) == (OTHER, "b")
    assert (moved.bucket, moved.key) == (BUCKET, "c")
    assert project.download(BUCKET, "c").read() == b"body"
