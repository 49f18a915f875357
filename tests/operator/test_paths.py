"""Paths inside a root."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import InvalidInput, IsADirectory, PathEscape
from calque.operator import paths

segments = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8
)


@given(st.lists(segments.filter(lambda each: each != ".."), min_size=1, max_size=5))
def test_keys_pass_unchanged(parts: list[str]) -> None:
    """Whatever a key is made of, it is kept exactly."""
    path = "/".join(parts)
    assert paths.valid_path(path) == path
    assert paths.file_path(path, "read") == path


@given(st.lists(segments, max_size=3), st.lists(segments, max_size=3))
def test_parents_are_refused_wherever_they_stand(before: list[str], after: list[str]) -> None:
    """One ``..`` segment is enough."""
    with pytest.raises(PathEscape):
        paths.valid_path("/".join([*before, "..", *after]))


@pytest.mark.parametrize("path", ["", "a/", "/", "a/b//"])
def test_directories(path: str) -> None:
    """Empty, or ending in a slash: no object."""
    assert paths.is_directory(path)
    with pytest.raises(IsADirectory):
        paths.file_path(path, "copy")


def test_what_is_no_path() -> None:
    """NUL, other types, and what UTF-8 cannot say."""
    with pytest.raises(InvalidInput):
        paths.valid_path("a\0b")
    with pytest.raises(InvalidInput):
        paths.valid_path(b"bytes")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        paths.unicode_path("\udce4")


@pytest.mark.parametrize(
    ("path", "collapsed"),
    [("a//b", "a/b"), ("./a/./b/", "a/b/"), ("/a", "a"), ("", ""), ("/", ""), (".", "")],
)
def test_collapse(path: str, collapsed: str) -> None:
    """File systems see one file behind many spellings."""
    assert paths.collapse(path) == collapsed


@given(st.lists(segments, max_size=3), st.lists(segments, min_size=1, max_size=3))
def test_join_and_relative_are_each_others_reverse(root: list[str], path: list[str]) -> None:
    """A path comes back from its key."""
    base, name = "/".join(root), "/".join(path)
    assert paths.relative(base, paths.join(base, name)) == name
