"""Shared Key, SAS and connection strings, against a server that checks them."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import generate_container_sas
from azure.storage.blob._shared.authentication import _storage_header_sort
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import PermissionDenied
from calque.operator import Operator
from calque.operator.services.azblob.credentials import service_order
from tests.operator.services.azblob.conftest import PART, THRESHOLD, Account

KEYS = ["plain", "a b+c%&=?#", "ü/日本/🙂", "quote'\"", "tilde~!*()[]{}|^<>;:@,$", "x" * 1000]


def by_sas(account: Account, permission: str) -> Operator:
    sas = generate_container_sas(
        account.name,
        account.container,
        account_key=account.azurite.keys[account.name],
        permission=permission,
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    return Operator.from_uri(
        f"az://{account.container}",
        account=account.name,
        sas=sas,
        endpoint=account.azurite.endpoint(account.name),
        threshold=THRESHOLD,
        part_size=PART,
    )


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_signed_rightly(op: Operator, account: Account, key: str) -> None:
    """By Shared Key and by SAS: written, read, listed, copied both ways."""
    for operator in (op, by_sas(account, "racwdlt")):
        operator.write(key, b"x" * (THRESHOLD + 1), tags={"a": "b c"})
        operator.copy(key, key + "2", concurrent=2)
        operator.write(key, b"small")
        operator.copy(key, key + "3")
        assert operator.read(key + "2") == b"x" * (THRESHOLD + 1)
        assert operator.read(key + "3") == b"small"
        assert [entry.path for entry in operator.list(key)] == [key, key + "2", key + "3"]


def test_a_connection_string_opens_the_account(account: Account) -> None:
    """As the portal gives it, with an endpoint of its own."""
    text = (
        f"DefaultEndpointsProtocol=http;AccountName={account.name};"
        f"AccountKey={account.azurite.keys[account.name]};"
        f"BlobEndpoint={account.azurite.endpoint(account.name)};"
    )
    operator = Operator.from_uri(f"az://{account.container}", connection_string=text)
    assert operator.write("x", b"1").size == 1


def test_a_signature_without_the_right_is_refused(op: Operator, account: Account) -> None:
    """Reading only: writes are PermissionDenied, and the signature is not shown."""
    op.write("x", b"1")
    reader = by_sas(account, "rl")
    assert reader.read("x") == b"1"
    with pytest.raises(PermissionDenied) as raised:
        reader.write("y", b"2")
    assert "sig=" not in str(raised.value)


def test_tags_that_may_not_be_read(op: Operator, account: Account) -> None:
    """Stat says unknown; a large copy refuses to lose them unless told to."""
    op.write("x", b"x" * (THRESHOLD + 1), tags={"a": "b"})
    blind = by_sas(account, "racwdl")
    found = blind.stat("x")
    if found.tags is not None:
        pytest.skip("this server lets everybody read tags")
    with pytest.raises(PermissionDenied, match="tags"):
        blind.copy("x", "y")
    assert blind.copy("x", "y", carry_tags=False).size == THRESHOLD + 1


@given(
    st.lists(st.text("abcxyz0189_", min_size=1, max_size=6).map("x-ms-meta-".__add__), unique=True)
)
def test_headers_are_signed_in_the_services_order(names: list[str]) -> None:
    """Which is not that of their bytes; Microsoft's client knows it."""
    fixed = ["x-ms-version", "x-ms-date", "x-ms-copy-source", "x-ms-copy-source-tag-option"]
    theirs = [name for name, _ in _storage_header_sort([(name, "") for name in fixed + names])]
    assert sorted(fixed + names, key=service_order) == theirs
