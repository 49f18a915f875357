"""Large objects through the client: killed midway, the next run goes on with their parts."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from calque.errors import Unavailable
from calque.operator import Operator
from calque.operator.services.fs.marker import is_temporary
from calque.store.open_project import open_project
from tests.servers.gcs_fake import GcsFake
from tests.servers.proxy import FaultProxy
from tests.servers.seaweedfs import S3Server
from tests.servers.shared import shared_azurite
from tests.transfer.conftest import MakeTree, s3_options
from tests.transfer.killed_run import Child

MIB = 1024 * 1024
PART = 5 * MIB
CONTENT = os.urandom(4 * PART + 17)
OPTIONS = {"chunk": PART, "concurrent": 2}


def die_midway(child: Child) -> None:
    """Killed as soon as the journal has the checkpoint of the second part."""
    died = child.run("copy.kept@2:kill")
    assert died.returncode == -signal.SIGKILL, died.stderr


def temporaries(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if is_temporary(each.name)]


def test_into_a_file(tmp_path: Path, tree_bucket: S3Server, s3: Operator) -> None:
    """The partial file is the one that takes the name; what it holds is not read again."""
    s3.write("from/big", CONTENT)
    target = tmp_path / "target"
    with FaultProxy(tree_bucket.endpoint) as proxy:
        service = {**s3_options(tree_bucket), "endpoint_url": proxy.endpoint}
        child = Child(
            tmp_path / "state", s3.location("from/"), f"{target}/", service=service, **OPTIONS
        )
        die_midway(child)
        (partial,) = temporaries(target)
        kept = partial.stat().st_ino
        assert not (target / "big").exists()
        proxy.reset()
        child.finish()
        asked = [each for each in proxy.log if each.method == "GET" and each.target.endswith("big")]
    assert len(asked) <= 3, "parts that were there were read again"
    assert (target / "big").read_bytes() == CONTENT
    assert (target / "big").stat().st_ino == kept
    assert temporaries(target) == []


def test_a_part_that_the_disk_has_lost_is_copied_again(
    tmp_path: Path, tree_bucket: S3Server, s3: Operator
) -> None:
    """After a power cut a partial file may lack what was written: its checksums tell."""
    s3.write("from/big", CONTENT)
    target = tmp_path / "target"
    child = Child(
        tmp_path / "state",
        s3.location("from/"),
        f"{target}/",
        service=s3_options(tree_bucket),
        **OPTIONS,
    )
    die_midway(child)
    (partial,) = temporaries(target)
    with partial.open("r+b") as file:
        file.write(bytes(4096))
    child.finish()
    assert (target / "big").read_bytes() == CONTENT


def test_a_source_that_changed_is_copied_anew(
    tmp_path: Path, tree_bucket: S3Server, s3: Operator
) -> None:
    """No byte of the old one is kept; what it left is found by a sweep."""
    s3.write("from/big", CONTENT)
    target = tmp_path / "target"
    child = Child(
        tmp_path / "state",
        s3.location("from/"),
        f"{target}/",
        service=s3_options(tree_bucket),
        **OPTIONS,
    )
    die_midway(child)
    fresh = os.urandom(len(CONTENT))
    s3.write("from/big", fresh)
    child.finish()
    assert (target / "big").read_bytes() == fresh
    there = Operator.from_uri(target)
    assert [each.location for each in there.leftovers()] == [there.location("big")]


def test_into_gcs(make_tree: MakeTree, tmp_path: Path) -> None:
    """One upload session makes the object, however many processes fill it."""
    source = make_tree("source", {"big": CONTENT})
    with GcsFake() as fake:
        fake.make_bucket("trees")
        service: dict[str, object] = {"endpoint": fake.endpoint, "anonymous": True}
        child = Child(
            tmp_path / "state", f"{source}/", "gs://trees/to/", service=service, **OPTIONS
        )
        die_midway(child)
        (session,) = fake.routes.uploads.sessions.values()
        assert PART <= len(session.data) < len(CONTENT)
        child.finish()
        assert list(fake.routes.uploads.sessions.values()) == [session]
        assert Operator.from_uri("gs://trees/to", **service).read("big") == CONTENT


def test_into_azure(make_tree: MakeTree, tmp_path: Path) -> None:
    """No block that is staged is sent again."""
    try:
        azurite = shared_azurite()
    except Unavailable as error:
        pytest.skip(f"Azurite cannot be had: {error}")
    azurite.make_container("calquetest", "streams")
    source = make_tree("source", {"big": CONTENT})
    with FaultProxy(azurite.endpoint("calquetest").rpartition("/")[0]) as proxy:
        service: dict[str, object] = {
            "account": "calquetest",
            "key": azurite.keys["calquetest"],
            "endpoint": f"{proxy.endpoint}/calquetest",
        }
        place = f"az://streams/{tmp_path.name}/"
        child = Child(tmp_path / "state", f"{source}/", place, service=service, **OPTIONS)
        die_midway(child)
        first = _blocks(proxy)
        proxy.reset()
        child.finish()
        again = _blocks(proxy)
        operator = Operator.from_uri(place, **service)
        assert operator.read("big") == CONTENT
        assert list(operator.leftovers()) == []
    assert len(first) >= 2
    assert len(set(first) & set(again)) <= 1, "only what was in flight may be sent twice"


def _blocks(proxy: FaultProxy) -> list[str]:
    sent = [each.target for each in proxy.log if each.method == "PUT"]
    return [each.partition("blockid=")[2] for each in sent if "comp=block&" in each]


def test_into_the_store(make_tree: MakeTree, tmp_path: Path) -> None:
    """The same upload is committed that was begun."""
    source, store = make_tree("source", {"big": CONTENT}), tmp_path / "store"
    with open_project(str(store)) as project:
        project.create_bucket("photos")
    place = "calque://photos/to/"
    service: dict[str, object] = {"project": str(store)}
    child = Child(tmp_path / "state", f"{source}/", place, service=service, **OPTIONS)
    die_midway(child)
    with Operator.from_uri(place, **service) as operator:
        assert len(list(operator.leftovers())) == 1
    child.finish()
    with Operator.from_uri(place, **service) as operator:
        assert operator.read("big") == CONTENT
        assert list(operator.leftovers()) == []
