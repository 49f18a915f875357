"""Keys and copy sources are encoded once, and can be told back."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import InvalidInput
from calque.operator.services.s3.address import Endpoint, copy_source, encode_key, valid_key

keys = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)


@given(keys)
def test_a_key_comes_back(key: str) -> None:
    """Decoding once gives the key; only unreserved characters and slashes stand unencoded."""
    encoded = encode_key(key)
    assert unquote(encoded) == key
    assert set(encoded) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~/%"
    )


@given(keys, st.none() | st.text("abcXYZ019._-", min_size=1))
def test_a_copy_source_comes_back(key: str, version: str | None) -> None:
    """Bucket, key and version are told apart, whatever question marks the key holds."""
    source = copy_source("bucket", key, version)
    path, _, query = source.partition("?")
    assert unquote(path) == f"bucket/{key}"
    assert query == (f"versionId={version}" if version else "")


def test_a_key_that_is_too_long_is_refused() -> None:
    """1,024 bytes of UTF-8 are the limit, not 1,024 characters."""
    assert valid_key("é" * 512, "") == "é" * 512
    with pytest.raises(InvalidInput, match="1025"):
        valid_key("é" * 512 + "x", "")


def test_a_character_the_server_changes_is_refused() -> None:
    """Before anything is written under another name."""
    with pytest.raises(InvalidInput):
        valid_key("a\\b", "\\")


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("a.s3.eu-west-1.amazonaws.com", "b.s3.us-east-1.amazonaws.com", True),
        ("a.s3.cn-north-1.amazonaws.com.cn", "b.s3.us-east-1.amazonaws.com", False),
        ("a.minio.example:9000", "b.minio.example:9000", True),
        ("a.minio.example:9000", "b.other.example:9000", False),
        ("a.MinIO.example:443", "b.minio.example", True),
        ("me:secret@a.minio.example", "b.minio.example", True),
    ],
)
def test_who_can_copy_to_whom(one: str, two: str, same: bool) -> None:
    """Buckets of one Amazon partition, or of one server, can copy between themselves."""
    first = Endpoint("https", one, "", "eu-west-1")
    second = Endpoint("https", two, "", "us-east-1")
    assert (first.server("a") == second.server("b")) is same
    assert "secret" not in first.server("a")


def test_a_server_however_it_is_spelled() -> None:
    """Case, default port, last slash and style of addressing make no other server; a path does."""
    plain = Endpoint("https", "minio.example", "/my.bucket", "us-east-1").server("my.bucket")
    assert plain == "https://minio.example"
    for same in (
        Endpoint("https", "MINIO.example:443", "/my.bucket", "eu-west-1"),
        Endpoint("https", "my.bucket.minio.example", "", "us-east-1"),
    ):
        assert same.server("my.bucket") == plain
    for other in (
        Endpoint("https", "minio.example:9000", "/my.bucket", "us-east-1"),
        Endpoint("https", "minio.example", "/tenant/my.bucket", "us-east-1"),
        Endpoint("http", "minio.example", "/my.bucket", "us-east-1"),
    ):
        assert other.server("my.bucket") != plain
