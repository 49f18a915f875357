"""Filters: the language of patterns, pruning of folders, narrowing of listings, limits."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import InvalidInput
from calque.transfer.request.filters import Filters, Rule
from calque.transfer.request.globs import Glob
from calque.values import Metadata
from tests.transfer.filter_cases import CASES, filters_of


@pytest.mark.parametrize(("rules", "path", "taken"), CASES)
def test_table(rules: str, path: str, taken: bool) -> None:
    """Each case of the documented table holds."""
    assert filters_of(rules).takes_path(path) is taken


@pytest.mark.parametrize(
    "pattern",
    ["", "/", "a//b", "[a", "[]", "[z-a]", "{a,b", "a\\", "[a/b]", "./a", "../*", "a/../b", "."],
)
def test_bad_patterns(pattern: str) -> None:
    """A pattern that cannot be read is refused when it is made, with the pattern in the words."""
    with pytest.raises(InvalidInput, match="pattern"):
        Glob(pattern)


@pytest.mark.parametrize(
    ("rules", "folder", "pruned"),
    [
        ("- tmp/", "tmp/", True),
        ("- tmp/", "a/tmp/", True),
        ("- tmp/", "a/tmp/b/", True),
        ("- tmp/", "a/", False),
        ("- /a/**", "a/", True),
        ("- /a/**", "a/b/", True),
        ("- /a/*", "a/", False),
        ("- *", "x/", True),
        ("- *.csv", "x.csv/", False),
        ("+ *.csv;- *", "x/", False),
        ("+ /a/b/*.csv;- *", "x/", True),
        ("+ /a/b/*.csv;- *", "a/", False),
        ("+ /a/b/*.csv;- *", "a/b/", False),
        ("+ /a/b/*.csv;- *", "a/b/c/", True),
        ("+ /a/b/;- *", "a/b/c/", False),
        ("+ /a/**/x;- *", "a/b/c/", False),
        ("+ /a/{b,c/d}/x;- *", "a/z/", False),
        ("+ /{a,b}/x;- *", "c/", True),
        ("+ /a/keep/;- /a/", "a/", False),
        ("+ /a/keep/;- /a/", "a/other/", True),
    ],
)
def test_pruned_folders(rules: str, folder: str, pruned: bool) -> None:
    """A folder is pruned where nothing below it can be taken, and listed where in doubt."""
    assert filters_of(rules).prunes(folder) is pruned


@pytest.mark.parametrize(
    ("rules", "prefixes"),
    [
        ("", ("",)),
        ("+ /a/b/*.csv", ("",)),
        ("+ /a/b/*.csv;- *", ("a/b/",)),
        ("+ /a/b*;+ /a/b/c/;+ /z/;- **", ("a/b", "z/")),
        ("+ /a/;+ *.csv;- **", ("",)),
        ("+ /a\\*b/;- **", ("a*b/",)),
        ("- /a/x/;+ /a/;- *;+ /b/", ("a/",)),
        ("- **", ()),
    ],
)
def test_narrowed_prefixes(rules: str, prefixes: tuple[str, ...]) -> None:
    """Includes from the root narrow the listing, if all else is excluded."""
    assert filters_of(rules).prefixes == prefixes


_paths = st.lists(st.text("ab.*", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)
_patterns = st.builds(
    lambda start, names, end: start + "/".join(names) + end,
    st.sampled_from(["", "/"]),
    st.lists(st.sampled_from(["a", "b", "*", "**", "a*", "?", "{a,b}", "[ab]"]), min_size=1),
    st.sampled_from(["", "/"]),
)
_rules = st.lists(
    st.builds(Rule, st.sampled_from(["include", "exclude"]), _patterns.map(Glob)), max_size=4
)


@given(_rules, _paths)
def test_pruning_and_narrowing_lose_nothing(rules: list[Rule], path: str) -> None:
    """What is taken lies in no pruned folder and under one of the prefixes."""
    filters = Filters(rules=tuple(rules))
    if not filters.takes_path(path):
        return
    names = path.split("/")
    for depth in range(1, len(names)):
        assert not filters.prunes("/".join(names[:depth]) + "/")
    assert any(path.startswith(prefix) for prefix in filters.prefixes)


def test_limits() -> None:
    """Sizes are bounds that are taken, ages are moments that are not, classes are names."""
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    entry = Metadata("a", size=10, last_modified=moment)
    assert Filters(min_size=10, max_size=10).takes_entry(entry)
    assert not Filters(min_size=11).takes_entry(entry)
    assert not Filters(max_size=9).takes_entry(entry)
    assert not Filters(newer_than=moment).takes_entry(entry)
    assert not Filters(older_than=moment).takes_entry(entry)
    assert Filters(newer_than=datetime(2026, 1, 1, tzinfo=UTC)).takes_entry(entry)
    assert Filters(storage_classes=frozenset({"STANDARD"})).takes_entry(entry)
    assert not Filters(storage_classes=frozenset({"GLACIER"})).takes_entry(entry)


def test_contradicting_limits() -> None:
    """Limits that nothing can keep are refused."""
    with pytest.raises(InvalidInput):
        Filters(min_size=2, max_size=1)
    with pytest.raises(InvalidInput):
        Filters(min_size=-1)
    with pytest.raises(InvalidInput):
        Filters(newer_than=datetime(2026, 1, 1))


def test_json() -> None:
    """Filters survive JSON, which is how a job keeps them."""
    filters = Filters(
        rules=(Rule.include("/a/*"), Rule.exclude("**")),
        min_size=1,
        max_size=9,
        newer_than=datetime(2026, 1, 1, tzinfo=UTC),
        storage_classes=frozenset({"GLACIER"}),
    )
    assert Filters.from_json(json.loads(json.dumps(filters.to_json()))) == filters
    assert Filters().to_json() == {}
