"""Access keys: what they reach, what the database tells of them, and how they end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from calque.errors import InvalidInput, NotFound
from calque.gateway.gateway import Gateway
from calque.gateway.keys import AccessKeys, hash_id
from calque.store.uplink.encryption.access import Prefix
from tests.gateway.test_gateway import refused
from tests.gateway.world import World, gateway_world
from tests.servers.postgres import PostgresServer


@pytest.fixture(params=["sqlite", "postgresql"])
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A world of its own, on either database, without a server."""
    database = None
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        database = server.database()
    with gateway_world(tmp_path / "data", serve=False, database=database) as made:
        yield made


def dump(world: World) -> bytes:
    """Every cell of every table."""
    engine = world.store.endpoint.database.engine
    found = b""
    with engine.connect() as connection:
        tables = ["s3_keys", "settings", "api_keys", "projects", "bucket_documents"]
        for table in tables:
            for row in connection.execute(text(f"SELECT * FROM {table}")):
                found += b"".join(
                    cell if isinstance(cell, bytes) else str(cell).encode() for cell in row
                )
    return found


def test_the_database_alone_opens_nothing(own: World) -> None:
    """Neither the secret, nor the grant, nor the id of a key is in the database."""
    key = own.make_key(prefixes=(Prefix("box", "secret-folder/"),))
    everything = dump(own)
    assert hash_id(key.access_key_id) in everything, "the key is there"
    grant = own.store.grant()
    root = grant.encryption.root
    assert root is not None
    for hidden in (
        key.secret_access_key.encode(),
        key.access_key_id.encode(),
        grant.serialize().encode(),
        root.reveal(),
        b"secret-folder",
    ):
        assert hidden not in everything


def test_keys_are_listed_and_revoked(own: World) -> None:
    """A list tells what a key may, never the key; a revoked one is refused, everywhere."""
    keys = own.gateway.keys
    key = keys.make(own.store.grant(), name="for the printer")
    other = Gateway(own.store)
    assert other.keys.find(key.access_key_id) is not None
    listed = {each.fingerprint: each for each in keys.list(own.store.grant())}
    assert listed[key.fingerprint].name == "for the printer"
    assert listed[key.fingerprint].may == "read,write,list,delete"
    with pytest.raises(NotFound):
        keys.revoke("ffff")
    with pytest.raises(NotFound):
        keys.revoke("CQNONE")
    assert keys.revoke(key.fingerprint[:8]) == key.fingerprint
    assert keys.find(key.access_key_id) is None
    assert own.ask("GET", "/", key=key).code == "InvalidAccessKeyId"
    assert own.ask("GET", "/").status == 200, "the other key goes on"


def test_a_revocation_elsewhere_is_seen_within_a_second(own: World) -> None:
    """Another process forgets the key at the next look, which comes within a second."""
    now = [100.0]
    there = AccessKeys(own.store.endpoint.database, clock=lambda: now[0])
    assert there.find(own.key.access_key_id) is not None
    own.gateway.keys.revoke(own.key.access_key_id)
    now[0] += 1.0
    assert there.find(own.key.access_key_id) is None


def test_a_grant_of_a_part_makes_no_keys(own: World) -> None:
    """Keys are made with the access of the whole store."""
    part = own.store.grant().restrict(Prefix("box"))
    with pytest.raises(InvalidInput):
        own.gateway.keys.make(part)


def test_a_key_reaches_what_it_was_given(world: World, bucket: str) -> None:
    """A prefix, the operations and the time are kept by the satellite, at every verb."""
    world.project.upload(bucket, "in/a", b"a")
    world.project.upload(bucket, "out/b", b"b")
    inside = world.client(world.make_key(prefixes=(Prefix(bucket, "in/"),)))
    assert inside.get_object(Bucket=bucket, Key="in/a")["Body"].read() == b"a"
    listed = inside.list_objects_v2(Bucket=bucket, Prefix="in/")
    assert [each["Key"] for each in listed["Contents"]] == ["in/a"]
    refused("AccessDenied", inside.get_object, Bucket=bucket, Key="out/b")
    refused("AccessDenied", inside.put_object, Bucket=bucket, Key="out/c", Body=b"")
    refused("AccessDenied", inside.list_objects_v2, Bucket=bucket)
    refused(
        "AccessDenied", inside.copy_object, Bucket=bucket, Key="in/c", CopySource=f"{bucket}/out/b"
    )
    refused("AccessDenied", inside.create_bucket, Bucket="another-one")
    refused("AccessDenied", inside.delete_bucket, Bucket=bucket)


def test_a_key_without_delete_may_not_overwrite(world: World, bucket: str) -> None:
    """Not by PUT, not by a copy, not by Complete; new names it may write."""
    world.project.upload(bucket, "k", b"kept")
    client = world.client(world.make_key(delete=False))
    client.put_object(Bucket=bucket, Key="new", Body=b"x")
    refused("AccessDenied", client.put_object, Bucket=bucket, Key="k", Body=b"x")
    refused("AccessDenied", client.copy_object, Bucket=bucket, Key="k", CopySource=f"{bucket}/new")
    refused("AccessDenied", client.delete_object, Bucket=bucket, Key="k")
    upload = client.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
    args = {"Bucket": bucket, "Key": "k", "UploadId": upload}
    part = client.upload_part(**args, PartNumber=1, Body=b"x")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    refused("AccessDenied", client.complete_multipart_upload, **args, MultipartUpload=parts)
    answer = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k"}]})
    assert answer["Errors"][0]["Code"] == "AccessDenied"
    assert world.project.download(bucket, "k").read() == b"kept"


def test_keys_for_reading_and_keys_of_the_past(world: World, bucket: str) -> None:
    """Without write nothing is written; after its time a key is refused."""
    reader = world.client(world.make_key(write=False))
    refused("AccessDenied", reader.put_object, Bucket=bucket, Key="k", Body=b"x")
    rules = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]}
    refused("AccessDenied", reader.put_bucket_cors, Bucket=bucket, CORSConfiguration=rules)
    over = world.make_key(until=datetime.now(UTC) - timedelta(minutes=1))
    refused("AccessDenied", world.client(over).list_objects_v2, Bucket=bucket)


def test_secrets_are_nowhere_to_be_read(world: World, bucket: str, caplog: Any) -> None:
    """Neither reprs, nor logs, nor errors tell a secret, an id or a signature."""
    caplog.set_level("DEBUG")
    key = world.make_key()
    found = world.gateway.keys.find(key.access_key_id)
    answers = [
        world.ask("GET", f"/{bucket}", key=key),
        world.ask("GET", f"/{bucket}/none", key=key),
        world.ask("PUT", f"/{bucket}/k", headers={"content-md5": "x"}, body=b"", key=key),
        world.ask("GET", f"/{bucket}", "X-Amz-Signature=abcdef", key=key),
    ]
    told = repr((key, found, world.gateway)) + caplog.text
    told += "".join(each.body.decode() for each in answers)
    for hidden in (key.secret_access_key, key.access_key_id, "abcdef", "AWS4-HMAC"):
        assert hidden not in told
