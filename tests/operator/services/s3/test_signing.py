"""Our signature is botocore's signature."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.operator.services.s3.address import encode_key, encode_query
from calque.operator.services.s3.signing import Keys, Signer

text = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
names = st.from_regex(r"x-amz-[a-z]{1,8}-[a-z]{1,8}", fullmatch=True)
values = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=30)


@settings(max_examples=300, deadline=None)
@given(
    method=st.sampled_from(["GET", "PUT", "POST", "HEAD", "DELETE"]),
    key=text,
    query=st.dictionaries(text, text | st.just(""), max_size=4),
    headers=st.dictionaries(names, values, max_size=5),
    body=st.binary(max_size=50),
    token=st.none() | st.from_regex(r"[A-Za-z0-9+/=]{10,40}", fullmatch=True),
    region=st.sampled_from(["us-east-1", "eu-central-1", "ap-southeast-2"]),
)
def test_the_signature_is_botocores(
    method: str,
    key: str,
    query: dict[str, str],
    headers: dict[str, str],
    body: bytes,
    token: str | None,
    region: str,
) -> None:
    """For any key, query, header, body and session token."""
    theirs = _signed_by_botocore(method, key, query, headers, body, token, region)
    moment = datetime.strptime(theirs["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    path = f"/bucket/{encode_key(key)}"
    ours = Signer(region).sign(
        Keys("AKIDEXAMPLE", "secret/key+", token),
        method,
        path,
        encode_query(query.items()),
        {"host": "127.0.0.1:9", **headers},
        theirs["X-Amz-Content-SHA256"],
        now=moment.timestamp(),
    )
    assert ours["authorization"] == theirs["Authorization"]
    assert ours.get("x-amz-security-token") == theirs.get("X-Amz-Security-Token")


def _signed_by_botocore(
    method: str,
    key: str,
    query: dict[str, str],
    headers: dict[str, str],
    body: bytes,
    token: str | None,
    region: str,
) -> AWSRequest:
    url = f"http://127.0.0.1:9/bucket/{encode_key(key)}"
    if query:
        url += "?" + "&".join(f"{name}={value}" for name, value in encode_query(query.items()))
    request = AWSRequest(method, url, headers=headers, data=body)
    S3SigV4Auth(Credentials("AKIDEXAMPLE", "secret/key+", token), "s3", region).add_auth(request)
    return request.headers


def test_a_new_day_and_new_keys_are_not_signed_with_the_old() -> None:
    """The derived key is remembered for one day and one secret only."""
    signer = Signer("us-east-1")

    def proof(secret: str, now: float) -> str:
        headers = {"host": "h"}
        signed = signer.sign(Keys("a", secret), "GET", "/b", [], headers, "x", now=now)
        return signed["authorization"]

    first = proof("one", 1_000_000)
    assert proof("two", 1_000_000) != first
    assert proof("one", 1_000_000 + 86_400) != first
    assert proof("one", 1_000_000) == first


def test_keys_tell_nothing() -> None:
    """Secrets are in no repr, and credentials cannot be pickled at all."""
    keys = Keys("AKID", "s3cr3t", "t0k3n")
    assert "s3cr3t" not in repr(keys)
    assert "t0k3n" not in repr(keys)
    with pytest.raises(TypeError):
        pickle.dumps(keys)


def test_a_space_in_a_query_is_no_plus() -> None:
    """S3 wants %20; what urllib makes by default would not match the signature."""
    assert encode_query([("prefix", "a b+c")]) == [("prefix", "a%20b%2Bc")]
    assert urlencode({"prefix": "a b+c"}) == "prefix=a+b%2Bc"
