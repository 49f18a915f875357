"""A page of a folder in the store's own order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from calque.errors import InvalidInput, NotFound
from calque.store.uplink.objects import PrefixInfo
from tests.store_client.world import World


def test_pages_hold_each_entry_once(
    any_database: str | None, make_world: Callable[..., World]
) -> None:
    """Whatever the size of a page; folders appear as folders, and what lies deeper does not."""
    project = make_world(database=any_database).project
    project.create_bucket("paged")
    keys = [f"f/{number}" for number in range(7)]
    for key in (*keys, "f/deep/1", "f/deep/2", "other"):
        project.upload("paged", key, b"12")
    for limit in (1, 3, 1000):
        found, cursor = [], ""
        while cursor is not None:
            page = project.list_page("paged", "f/", cursor=cursor, limit=limit)
            assert len(page.entries) <= limit
            found += page.entries
            cursor = page.cursor
        assert sorted(each.key for each in found) == sorted([*keys, "f/deep/"])
        assert [each.key for each in found if isinstance(each, PrefixInfo)] == ["f/deep/"]
    assert [each.key for each in project.list_page("paged").entries] == ["f/", "other"]
    assert project.list_page("paged", "none/") == ([], None)


def test_what_is_no_page_is_refused(plain_world: World) -> None:
    """A prefix that is no folder, a cursor that is none, a bucket that is not there."""
    project = plain_world.project
    project.create_bucket("refused")
    with pytest.raises(InvalidInput):
        project.list_page("refused", "no-folder")
    with pytest.raises(InvalidInput):
        project.list_page("refused", cursor="ü")
    with pytest.raises(NotFound):
        project.list_page("not-there")
