"""List, on every service."""

from collections.abc import Callable
from itertools import islice

from calque.operator import Operator

KEYS = ["a/1", "a/2", "a/b/3", "ab/4", "b", "é/5", "z+ %?#&'\"x", "🙂/6"]


def fill(op: Operator, keys: list[str]) -> None:
    for key in keys:
        op.write(key, key.encode())


def paths(op: Operator, prefix: str = "", **how: object) -> list[str]:
    return [entry.path for entry in op.list(prefix, **how)]  # type: ignore[arg-type]


def test_everything_in_key_order(op: Operator, need: Callable[..., None]) -> None:
    """All objects, in the byte order of their keys, with their sizes; the location of each is that
    of the root and its path, which stages rely on."""
    need("list_in_key_order")
    fill(op, KEYS)
    found = list(op.list())
    assert [entry.path for entry in found] == sorted(KEYS, key=lambda key: key.encode())
    assert all(entry.size == len(entry.path.encode()) for entry in found)
    assert not any(entry.is_dir for entry in found)
    root = op.location("").removesuffix("/") + "/"
    assert [op.location(entry.path) for entry in found] == [root + entry.path for entry in found]


def test_an_empty_root_lists_nothing(op: Operator) -> None:
    """No entries, and no error."""
    assert paths(op) == []
    assert paths(op, "nothing/") == []


def test_a_prefix_is_a_plain_string(op: Operator) -> None:
    """``a`` finds ``ab/4`` too, ``a/`` does not."""
    fill(op, KEYS)
    assert paths(op, "a") == ["a/1", "a/2", "a/b/3", "ab/4"]
    assert paths(op, "a/") == ["a/1", "a/2", "a/b/3"]
    assert paths(op, "a/b") == ["a/b/3"]


def test_one_level(op: Operator) -> None:
    """Not recursive: what lies deeper appears once, as a directory."""
    fill(op, KEYS)
    assert paths(op, recursive=False) == ["a/", "ab/", "b", "z+ %?#&'\"x", "é/", "🙂/"]
    assert paths(op, "a/", recursive=False) == ["a/1", "a/2", "a/b/"]
    assert paths(op, "a", recursive=False) == ["a/", "ab/"]
    dirs = {entry.path for entry in op.list(recursive=False) if entry.is_dir}
    assert dirs == {"a/", "ab/", "é/", "🙂/"}


def test_start_after(op: Operator, need: Callable[..., None]) -> None:
    """Entries strictly after a key, whether that key exists or not."""
    need("list_in_key_order")
    fill(op, KEYS)
    ordered = sorted(KEYS, key=lambda key: key.encode())
    for at, key in enumerate(ordered):
        assert paths(op, start_after=key) == ordered[at + 1 :]
    assert paths(op, start_after="a/15") == ["a/2", *ordered[2:]]
    assert paths(op, "a/", start_after="a/1") == ["a/2", "a/b/3"]
    assert paths(op, recursive=False, start_after="a/") == paths(op, recursive=False)[1:]


def test_look_alikes_are_ordered_by_their_bytes(op: Operator, need: Callable[..., None]) -> None:
    """A directory sorts by its slash: ``a-b`` and ``a.b`` come before ``a/b``, ``a0`` after."""
    need("list_in_key_order")
    keys = ["a-b", "a.b", "a/b", "a0", "aa"]
    fill(op, list(reversed(keys)))
    assert paths(op) == keys
    assert paths(op, recursive=False) == ["a-b", "a.b", "a/", "a0", "aa"]


def test_pages_join_without_seam(op: Operator) -> None:
    """More entries than a page holds are all there, once, and may be read in part."""
    keys = [f"k{number:03}" for number in range(25)]
    fill(op, keys)
    assert paths(op) == keys
    assert [entry.path for entry in islice(op.list(), 9)] == keys[:9]
    assert paths(op, start_after="k010") == keys[11:]


def test_the_root_ends_where_it_ends(op: Operator, other: Operator) -> None:
    """Two roots of one service do not see each other."""
    op.write("mine", b"1")
    other.write("theirs", b"2")
    assert paths(op) == ["mine"]
    assert paths(other) == ["theirs"]
