"""Requests signed for others: what a stranger sends with them is done, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import botocore.session
import pytest
from botocore.config import Config

from calque.errors import InvalidInput, IsADirectory, Unsupported
from calque.operator import Operator, PresignedRequest
from calque.operator.services.s3.signing import Keys, Signer
from tests.operator.presigned import ODD, send
from tests.operator.services.s3.server import make_bucket
from tests.servers.seaweedfs import S3Server


@pytest.fixture(scope="module")
def server(seaweed: S3Server) -> S3Server:
    """SeaweedFS, which checks signatures."""
    make_bucket(seaweed, "signed")
    return seaweed


@pytest.fixture
def op(server: S3Server) -> Iterator[Operator]:
    """A bucket there."""
    with Operator.from_uri(
        "s3://signed",
        endpoint_url=server.endpoint,
        region=server.region,
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
    ) as operator:
        yield operator


@pytest.mark.parametrize("key", ["plain", ODD])
def test_every_verb(op: Operator, key: str) -> None:
    """A stranger writes, looks, reads and deletes by what was signed for that."""
    assert send(op.presign("write", key), b"theirs")[0] == 200
    assert op.read(key) == b"theirs"
    assert send(op.presign("stat", key))[0] == 200
    assert send(op.presign("read", key, expires=timedelta(minutes=1))) == (200, b"theirs")
    other = PresignedRequest("DELETE", op.presign("read", key).url)
    assert send(other)[0] == 403, "a signature is for one verb"
    assert op.exists(key)
    assert send(op.presign("delete", key))[0] in (200, 204)
    assert not op.exists(key)


def test_as_botocore_signs() -> None:
    """The same URL, to the last character of the signature, with a session's token too."""
    session = botocore.session.Session()
    client = session.create_client(
        "s3",
        region_name="eu-west-1",
        endpoint_url="http://minio.example:9000",
        aws_access_key_id="AK",
        aws_secret_access_key="secret",
        aws_session_token="token/+=",
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )
    theirs = client.generate_presigned_url("get_object", {"Bucket": "b", "Key": "k"}, 600)
    told = dict(pair.split("=", 1) for pair in urlsplit(theirs).query.split("&"))
    keys = Keys("AK", "secret", "token/+=")
    stamp = _moment(told["X-Amz-Date"])
    ours = Signer("eu-west-1").presign(
        keys, "GET", "/b/k", {"host": "minio.example:9000"}, 600, now=stamp
    )
    assert dict(ours) == told


def _moment(stamp: str) -> float:
    return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


def test_what_cannot_be_signed(op: Operator) -> None:
    """Other verbs, directories, times that cannot be, services without signatures."""
    for bad in ({"verb": "list"}, {"expires": 0}, {"expires": 10**9}, {"expires": "soon"}):
        given = {"verb": "read", "expires": 60, **bad}
        with pytest.raises(InvalidInput):
            op.presign(given["verb"], "x", expires=given["expires"])  # type: ignore[arg-type]
    with pytest.raises(IsADirectory):
        op.presign("read", "folder/")
    with pytest.raises(Unsupported):
        Operator.from_uri("memory://").presign("read", "x")


def test_the_url_is_hidden(op: Operator) -> None:
    """Its signature is in no repr."""
    asked = op.presign("read", "x")
    assert "X-Amz-Signature" in asked.url
    assert "Signature" not in repr(asked)
