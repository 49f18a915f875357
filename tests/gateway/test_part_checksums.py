"""Whether the checksums of parts give that of their object."""

from __future__ import annotations

from typing import Any

import pytest

from calque.gateway.content import CHECKSUM
from calque.gateway.part_checksums import DIFFERENT, check_checksums
from calque.values import MIB
from tests.command import run_command_text
from tests.gateway.test_multipart import begin, complete, send
from tests.gateway.world import World

BYTES = bytes(range(256)) * (5 * MIB // 256)


def upload(client: Any, bucket: str, key: str, kind: str) -> None:
    told = {"ChecksumAlgorithm": "CRC32", "ChecksumType": kind}
    begun = begin(client, bucket, key, **told)
    parts = [send(client, begun, number, data) for number, data in ((1, BYTES), (2, b"tail"))]
    complete(client, begun, parts)


@pytest.mark.parametrize("kind", ["COMPOSITE", "FULL_OBJECT"])
def test_checksums_of_parts_are_compared(world: World, client: Any, bucket: str, kind: str) -> None:
    """Uploads in parts and their copies fit; an object with another checksum is named."""
    upload(client, bucket, "a/whole", kind)
    client.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/a/whole")
    client.put_object(Bucket=bucket, Key="plain", Body=b"x", ChecksumAlgorithm="CRC32")
    assert list(check_checksums(world.project)) == []
    info = world.project.stat(bucket, "a/whole")
    algorithm, made, value = info.metadata[CHECKSUM].split(":")
    swapped = value.translate(str.maketrans("ABab", "BAba"))
    other = swapped if swapped != value else f"AAAA{value[4:]}"
    changed = {**info.metadata, CHECKSUM: f"{algorithm}:{made}:{other}"}
    world.project.update_metadata(bucket, "a/whole", changed)
    assert [tuple(each) for each in check_checksums(world.project)] == [
        (DIFFERENT, f"{bucket}/a/whole")
    ]
    world.project.delete_object(bucket, "a/whole")


def test_fsck_compares_checksums(world: World, client: Any, bucket: str) -> None:
    """The command says so too, and is asked for it: it needs the passphrase of the store."""
    upload(client, bucket, "k", "FULL_OBJECT")
    folder = str(world.store.folder)
    assert run_command_text("store", "fsck", folder, "--checksums").returncode == 0
    info = world.project.stat(bucket, "k")
    changed = {**info.metadata, CHECKSUM: "CRC32:FULL_OBJECT:AAAAAA=="}
    world.project.update_metadata(bucket, "k", changed)
    told = run_command_text("store", "fsck", folder, "--checksums", "--json")
    assert told.returncode == 1
    assert DIFFERENT in told.stdout
    assert run_command_text("store", "fsck", folder).returncode == 0
    world.project.delete_object(bucket, "k")
