"""One tree by two names: told apart from two trees before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from calque.errors import IsSameFile
from calque.operator import Operator
from calque.transfer.api import copy_tree, move_tree, sync_tree
from calque.transfer.plan.overlap import _are_same
from calque.values import Metadata
from tests.gateway.world import REGION, World, gateway_world
from tests.transfer.conftest import MakeTree, files_of, objects_of


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A store in a folder, and the gateway of S3 before it."""
    with gateway_world(tmp_path_factory.mktemp("overlap") / "data") as made:
        made.project.create_bucket("photos")
        yield made


@pytest.fixture
def store(world: World) -> Iterator[Operator]:
    """The bucket as the store's own service shows it."""
    with Operator.from_uri("calque://photos", project=str(world.store.folder)) as operator:
        for entry in list(operator.list()):
            operator.delete(entry.path)
        yield operator


def by_gateway(world: World) -> dict[str, object]:
    return {
        "endpoint_url": world.url,
        "region": REGION,
        "access_key_id": world.key.access_key_id,
        "secret_access_key": world.key.secret_access_key,
    }


def by_folder(world: World) -> dict[str, object]:
    return {"project": str(world.store.folder)}


@pytest.mark.parametrize(("source", "target"), [("x/", "x/"), ("x/in/", "x/"), ("x/", "x/new/")])
def test_a_store_and_its_gateway_are_one(
    world: World, store: Operator, source: str, target: str
) -> None:
    """``calque://photos`` and ``s3://photos`` of its own gateway, whichever is the source."""
    wanted = {"x/a": b"1", "x/in/b": b"22"}
    for path, content in wanted.items():
        store.write(path, content)
    sides = (("calque://photos", by_folder(world)), ("s3://photos", by_gateway(world)))
    for (ours, our_options), (theirs, their_options) in (sides, sides[::-1]):
        for verb, more in ((sync_tree, {"delete": True}), (move_tree, {}), (copy_tree, {})):
            with pytest.raises(IsSameFile):
                verb(  # type: ignore[operator]
                    f"{ours}/{source}",
                    f"{theirs}/{target}",
                    source_options=our_options,
                    target_options=their_options,
                    **more,
                )
    assert objects_of(store) == wanted


def test_a_store_and_another_server_are_two(world: World, store: Operator, tmp_path: Path) -> None:
    """The same names on the gateway of another store: copied there, and the next run finds it up to
    date."""
    for number in range(3):
        store.write(f"x/{number}", b"1")
    with gateway_world(tmp_path / "other") as other:
        other.project.create_bucket("photos")
        for outcome in ("copied", "up to date"):
            report = sync_tree(
                "calque://photos/x/",
                "s3://photos/x/",
                delete=True,
                source_options=by_folder(world),
                target_options=by_gateway(other),
            )
            assert report.totals.of(outcome).objects == 3  # type: ignore[arg-type]


def test_a_store_is_not_copied_over_its_own_folder(
    world: World, store: Operator, make_tree: MakeTree, tmp_path: Path
) -> None:
    """The files that a store is made of are no target, nor a source of the store itself; a link to
    them neither."""
    store.write("x/a", b"1")
    folder = world.store.folder
    before = set(files_of(folder))
    (tmp_path / "link").symlink_to(folder)
    for place in (folder, folder / "deep", folder.parent, tmp_path / "link"):
        with pytest.raises(IsSameFile):
            sync_tree("calque://photos/", place, source_options=by_folder(world), delete=True)
    for place in (folder, folder.parent, tmp_path / "link"):
        with pytest.raises(IsSameFile):
            copy_tree(f"{place}/", "calque://photos/", target_options=by_folder(world))
    assert set(files_of(folder)) >= before
    beside = make_tree("beside", {"b": b"2"})
    assert copy_tree(f"{beside}/", "calque://photos/y/", target_options=by_folder(world)).ok


def test_two_names_of_one_store_are_one(world: World, store: Operator, tmp_path: Path) -> None:
    """Its folder, and a link to its folder."""
    store.write("x/a", b"1")
    (tmp_path / "data").symlink_to(world.store.folder)
    with pytest.raises(IsSameFile):
        sync_tree(
            "calque://photos/x/",
            "calque://photos/",
            delete=True,
            source_options=by_folder(world),
            target_options={"project": str(tmp_path / "data")},
        )
    assert objects_of(store) == {"x/a": b"1"}


def test_an_operator_that_was_opened_below_the_bucket(world: World, store: Operator) -> None:
    """Its paths begin elsewhere, and it is seen all the same."""
    store.write("x/a", b"1")
    with (
        Operator.from_uri("s3://photos/x", **by_gateway(world)) as inner,
        pytest.raises(IsSameFile),
    ):
        sync_tree(store, inner, delete=True)
    assert objects_of(store) == {"x/a": b"1"}


def entry(second: int, micro: int = 0) -> Metadata:
    moment = datetime(2026, 1, 1, 0, 0, second, micro, tzinfo=UTC)
    return Metadata(path=f"{second}", size=1, last_modified=moment, etag=f"{micro}")


def test_what_proves_that_two_listings_are_of_one_bucket() -> None:
    """Thousandths of a second do; whole seconds do where there are several of them, or etags."""
    fine, whole = [entry(1, 123_456)], [entry(1)]
    assert _are_same(fine, [entry(1, 123_000)], with_etags=False)
    assert not _are_same(fine, [entry(1, 124_000)], with_etags=False)
    assert not _are_same(fine, whole, with_etags=False), "a copy within a second is no proof"
    assert _are_same([*fine, entry(2, 5)], [*whole, entry(2)], with_etags=False)
    assert _are_same(whole, whole, with_etags=True)
    assert not _are_same(whole, [], with_etags=True)
