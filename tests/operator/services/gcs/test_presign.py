"""Requests for objects that are signed for others."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from google.cloud.storage import Client
from google.oauth2 import service_account

from calque.errors import InvalidInput, PermissionDenied, Unsupported
from calque.operator import Operator, PresignedRequest
from calque.operator.services.gcs.credentials import SigningKey
from calque.operator.services.gcs.presign import LONGEST, sign_query
from tests.operator.presigned import ODD, send
from tests.operator.services.gcs.service_account import EMAIL, key_file, public_key
from tests.servers.gcs_fake import GcsFake


@pytest.fixture
def key(fake: GcsFake, tmp_path: Path) -> Path:
    """The file of an account that the fake knows; nothing is served without a proof."""
    path = key_file(tmp_path, f"{fake.endpoint}/token")
    fake.accounts[EMAIL] = public_key(path)
    fake.require_token = True
    return path


@pytest.fixture
def op(fake: GcsFake, key: Path) -> Operator:
    """A folder of a bucket, opened by that account."""
    return Operator.from_uri("gs://near/a folder", endpoint=fake.endpoint, key_file=str(key))


@pytest.mark.parametrize("name", ["plain", ODD])
def test_every_verb(op: Operator, name: str) -> None:
    """A stranger writes, looks, reads and deletes by what was signed for that."""
    assert send(op.presign("write", name), b"theirs")[0] == 200
    assert op.read(name) == b"theirs"
    assert send(op.presign("stat", name))[0] == 200
    assert send(op.presign("read", name)) == (200, b"theirs")
    other = PresignedRequest("DELETE", op.presign("read", name).url)
    assert send(other)[0] == 403, "a signature is for one verb"
    assert send(op.presign("delete", name))[0] == 204
    assert not op.exists(name)


def test_nothing_is_sent_to_sign(fake: GcsFake, op: Operator) -> None:
    """Neither for a token nor for the object, which need not be there."""
    op.presign("read", "x")
    assert fake.tokens == set()
    assert fake.world.journal.entries == []


def test_it_is_for_one_object_and_ends(fake: GcsFake, op: Operator) -> None:
    """Another name, or a moment after its end, is refused by the service."""
    op.write("x", b"1")
    op.write("y", b"2")
    asked = op.presign("read", "x", expires=3600)
    assert send(asked)[0] == 200
    moved = PresignedRequest("GET", asked.url.replace("/x?", "/y?"))
    assert send(moved)[0] == 403
    fake.world.now = lambda: time.time() + 3601
    assert send(asked)[0] == 400


def test_as_googles_client_signs(key: Path) -> None:
    """The same query, to the last character of the signature, with who pays too."""
    account = service_account.Credentials.from_service_account_file(str(key))
    blob = Client("p", credentials=account).bucket("b", user_project="payer").blob(ODD)
    theirs = urlsplit(
        blob.generate_signed_url(
            version="v4", method="PUT", expiration=600, query_parameters={"userProject": "payer"}
        )
    )
    told = dict(parse_qsl(theirs.query))
    now = datetime.strptime(told["X-Goog-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    ours = sign_query(
        SigningKey(account.signer_email, account.sign_bytes),
        "PUT",
        theirs.netloc,
        theirs.path,
        {"userProject": "payer"},
        600,
        now,
    )
    assert ours == told


def test_the_payer_and_the_place_are_signed_too(fake: GcsFake, key: Path) -> None:
    """``user_project`` goes with the URL, and the path is encoded as it is signed."""
    op = Operator.from_uri(
        "gs://near", endpoint=fake.endpoint, key_file=str(key), user_project="payer"
    )
    op.write(ODD, b"1")
    asked = op.presign("read", ODD)
    assert "userProject=payer&" in asked.url + "&"
    assert send(asked) == (200, b"1")
    cheaper = asked.url.replace("payer", "other")
    assert send(PresignedRequest("GET", cheaper))[0] == 403


@pytest.mark.parametrize("kind", ["token", "authorized_user"])
def test_credentials_that_cannot_sign(kind: str, tmp_path: Path) -> None:
    """A token and a person's login hold no key: refused at once, with what would do."""
    login = tmp_path / "login.json"
    login.write_text(
        json.dumps({"type": kind, "client_id": "i", "client_secret": "s", "refresh_token": "t"})
    )
    given = {"token": "hush"} if kind == "token" else {"key_file": str(login)}
    op = Operator.from_uri("gs://b", endpoint="http://127.0.0.1:1", **given)  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="service account") as raised:
        op.presign("read", "x")
    assert "key_file" in (raised.value.hint or "")
    assert "hush" not in str(raised.value)


def test_a_broken_key_file(tmp_path: Path) -> None:
    """It is told as it is when a request needs it."""
    path = tmp_path / "key.json"
    path.write_text("{}")
    op = Operator.from_uri("gs://b", endpoint="http://127.0.0.1:1", key_file=str(path))
    with pytest.raises(PermissionDenied, match="credentials file"):
        op.presign("read", "x")


def test_a_week_at_most(op: Operator) -> None:
    """The service takes nothing longer, so it is not signed."""
    assert op.presign("read", "x", expires=LONGEST).method == "GET"
    with pytest.raises(InvalidInput, match="a week"):
        op.presign("read", "x", expires=LONGEST + 1)


def test_a_public_bucket_needs_no_signature(near: Operator, fake: GcsFake) -> None:
    """Whoever has the address may ask."""
    assert near.presign("read", "a b").url == f"{fake.endpoint}/near/a%20b"
