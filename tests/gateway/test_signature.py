"""Signatures: AWS's published examples, boto3's own, and everything that must be refused."""

from __future__ import annotations

import base64
import hmac
import io
import urllib.error
import urllib.request
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from calque.gateway.errors import S3Error
from calque.gateway.gateway import Gateway
from calque.gateway.request import Headers, Request
from calque.gateway.signature.canonical import (
    Scope,
    SigningKey,
    canonical_requests,
    derive_key,
    parse_credential,
    sign_canonical,
)
from calque.gateway.signature.chunks import ChunkedBody
from calque.gateway.signature.header import verify_header
from calque.gateway.signature.presigned import verify_presigned
from tests.gateway.world import HOST, Answer, World, sign_request

EXAMPLE_ID = "AKIAIOSFODNN7EXAMPLE"
EXAMPLE_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
THEN = datetime(2013, 5, 24, tzinfo=UTC)
STAMP = "20130524T000000Z"
SCOPE = f"{EXAMPLE_ID}/20130524/us-east-1/s3/aws4_request"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
WELCOME = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"

EXAMPLES = {
    "get object": (
        ("GET", "/test.txt", "", {"range": "bytes=0-9"}, EMPTY),
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    ),
    "put object": (
        (
            "PUT",
            "/test%24file.text",
            "",
            {
                "date": "Fri, 24 May 2013 00:00:00 GMT",
                "x-amz-storage-class": "REDUCED_REDUNDANCY",
            },
            WELCOME,
        ),
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    ),
    "get lifecycle": (
        ("GET", "/", "lifecycle", {}, EMPTY),
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    ),
    "list objects": (
        ("GET", "/", "max-keys=2&prefix=J", {}, EMPTY),
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    ),
}


def secret_of(_: str) -> str:
    return EXAMPLE_SECRET


def example(name: str, signature: str | None = None) -> Request:
    (method, path, query, headers, payload), right = EXAMPLES[name]
    sent = {
        "host": "examplebucket.s3.amazonaws.com",
        "x-amz-content-sha256": payload,
        "x-amz-date": STAMP,
        **headers,
    }
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={SCOPE},SignedHeaders={';'.join(sorted(sent))},"
        f"Signature={signature or right}"
    )
    return Request(method, path, query, Headers({**sent, "authorization": authorization}.items()))


@pytest.mark.parametrize("name", EXAMPLES)
def test_published_examples_of_the_header(name: str) -> None:
    """AWS's own examples are right, and wrong with one digit changed."""
    verify_header(example(name), secret_of, THEN)
    wrong = EXAMPLES[name][1][:-1] + ("0" if EXAMPLES[name][1][-1] != "0" else "1")
    with pytest.raises(S3Error) as caught:
        verify_header(example(name, wrong), secret_of, THEN)
    assert caught.value.code == "SignatureDoesNotMatch"


def presigned_example() -> Request:
    query = (
        "X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
        f"&X-Amz-Date={STAMP}&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )
    headers = Headers([("host", "examplebucket.s3.amazonaws.com")])
    return Request("GET", "/test.txt", query, headers)


def test_the_published_presigned_example() -> None:
    """It is good for its day, and over after it."""
    verify_presigned(presigned_example(), secret_of, THEN + timedelta(hours=23))
    with pytest.raises(S3Error, match="Request has expired"):
        verify_presigned(presigned_example(), secret_of, THEN + timedelta(hours=25))
    verify_presigned(presigned_example(), secret_of, THEN - timedelta(minutes=14))
    with pytest.raises(S3Error, match="not valid yet"):
        verify_presigned(presigned_example(), secret_of, THEN - timedelta(minutes=16))


def signing(seed: str) -> SigningKey:
    scope = parse_credential(SCOPE)
    assert scope is not None
    key = derive_key(EXAMPLE_SECRET, scope.day, scope.region, scope.service)
    return SigningKey(key, scope, STAMP, seed)


def chunked(*chunks: tuple[bytes, str], trailer: str = "") -> bytes:
    body = b"".join(
        f"{len(data):x};chunk-signature={signature}\r\n".encode() + data + b"\r\n"
        for data, signature in chunks[:-1]
    )
    return body + f"0;chunk-signature={chunks[-1][1]}\r\n{trailer}\r\n".encode()


PLAIN_SEED = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
PLAIN_CHUNKS = (
    (b"a" * 65536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
    (b"a" * 1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
    (b"", "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
)
TRAILER_SEED = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"
TRAILER_CHUNKS = (
    (b"a" * 65536, "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2"),
    (b"a" * 1024, "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7"),
    (b"", "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"),
)
TRAILER = (
    "x-amz-checksum-crc32c:sOO8/Q==\r\n"
    "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n"
)


def test_the_published_chunks() -> None:
    """Signed chunks, without and with a signed trailer."""
    body = ChunkedBody(io.BytesIO(chunked(*PLAIN_CHUNKS)), signing(PLAIN_SEED), has_trailer=False)
    assert b"".join(body) == b"a" * 66560
    data = chunked(*TRAILER_CHUNKS, trailer=TRAILER)
    body = ChunkedBody(io.BytesIO(data), signing(TRAILER_SEED), has_trailer=True)
    assert b"".join(body) == b"a" * 66560
    assert body.trailers == {"x-amz-checksum-crc32c": "sOO8/Q=="}


@pytest.mark.parametrize("chunk", [0, 1, 2])
def test_a_wrong_chunk_is_found(chunk: int) -> None:
    """A wrong signature of any chunk, and changed bytes under a right one, are refused."""
    data, signature = PLAIN_CHUNKS[chunk]
    changed = [(data, "0" * 64), (data, "")] + ([(data[:-1] + b"b", signature)] if data else [])
    for each in changed:
        chunks = [*PLAIN_CHUNKS]
        chunks[chunk] = each
        body = ChunkedBody(io.BytesIO(chunked(*chunks)), signing(PLAIN_SEED), has_trailer=False)
        with pytest.raises(S3Error):
            b"".join(body)


@pytest.mark.parametrize("style", ["s3v4", "s3"])
def test_presigned_links_of_boto3(world: World, bucket: str, style: str) -> None:
    """Version 4 and Version 2: a link reads, writes, overrides headers, and nothing else."""
    client = world.client(signature_version=style)
    name = "a b+c/ü&=?"
    put = client.generate_presigned_url(
        "put_object", Params={"Bucket": bucket, "Key": name, "ContentType": "text/plain"}
    )
    request = urllib.request.Request(put, b"linked", {"Content-Type": "text/plain"}, method="PUT")
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
    get = client.generate_presigned_url(
        "get_object",
        Params={
            "Bucket": bucket,
            "Key": name,
            "ResponseContentDisposition": 'attachment; filename="ü"',
        },
    )
    with urllib.request.urlopen(get) as answer:
        assert answer.read() == b"linked"
        assert answer.headers["Content-Disposition"].startswith("attachment")
    for forged in (get[:-1], get.replace("Signature=", "Signature=x")):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(forged)
        assert caught.value.code == 403
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(get, method="DELETE"))
    assert caught.value.code == 403


def sign_v2(world: World, method: str, path: str, expires: int = 4_000_000_000) -> str:
    """The query of a link of Version 2."""
    text = f"{method}\n\n\n{expires}\n{path}"
    made = hmac.digest(world.key.secret_access_key.encode(), text.encode(), "sha1")
    signature = quote(base64.b64encode(made).decode(), safe="")
    return f"AWSAccessKeyId={world.key.access_key_id}&Expires={expires}&Signature={signature}"


def test_a_link_of_version_2_is_good_for_one_thing(world: World, bucket: str) -> None:
    """Neither the host, which it does not sign, nor a name of the query turns it into another."""
    world.project.upload(bucket, "k", b"x")
    link = sign_v2(world, "GET", f"/{bucket}/k")
    assert world.ask("GET", f"/{bucket}/k", link, sign=False).body == b"x"
    for host in (".localhost", "..localhost", "a.localhost", f"{bucket}.localhost"):
        answer = world.ask("GET", f"/{bucket}/k", link, {"host": host}, sign=False)
        assert answer.status in (400, 403), host
        assert b"ListAllMyBucketsResult" not in answer.body
    for more in ("tagging", "uploadId=x", "acl", "x-amz-copy-source=b/k", "versionId=1"):
        assert world.ask("GET", f"/{bucket}/k", f"{link}&{more}", sign=False).status == 403
    post = sign_v2(world, "POST", f"/{bucket}")
    body = b"<PrefixTransfer><Prefix/><TargetPrefix>a/</TargetPrefix></PrefixTransfer>"
    moved = world.ask("POST", f"/{bucket}", f"{post}&calque-move-prefix", {}, body, sign=False)
    assert moved.code == "SignatureDoesNotMatch"
    old = sign_v2(world, "GET", f"/{bucket}/k", 1_500_000_000)
    assert b"Request has expired" in world.ask("GET", f"/{bucket}/k", old, sign=False).body


@pytest.mark.parametrize(
    "date",
    [
        "",
        "x",
        "Fri, 31 Dec 9999 23:59:59 -1000",
        "Mon, 16 Nov 2026 02:33:16 +99999999999999999999",
        "Mon, 99 Nov 2026 02:33:16 GMT",
    ],
)
def test_dates_that_are_none(world: World, bucket: str, date: str) -> None:
    """Where there is no x-amz-date, Date is the time; one that cannot be is refused as such."""
    headers = {"host": HOST}
    headers |= sign_request(world.key, "GET", f"/{bucket}", "", headers, b"")
    del headers["x-amz-date"]
    request = Request("GET", f"/{bucket}", "", Headers((headers | {"date": date}).items()))
    assert Answer(world.gateway.handle(request)).code == "AccessDenied"


@pytest.mark.parametrize("path", ["///", "//k", "/%2F", "//bucket/k", "/%00", "/..", "/./k"])
def test_paths_without_a_bucket(world: World, path: str) -> None:
    """A path that names no bucket is no request for the list of them, and never a 500."""
    answer = world.ask("GET", path)
    assert answer.status in (400, 403, 404), answer.body
    assert b"ListAllMyBucketsResult" not in answer.body


def test_links_have_a_time(world: World, bucket: str) -> None:
    """From one second to a week; a link of none or of longer is refused."""
    client = world.client(signature_version="s3v4")
    made = client.generate_presigned_url("list_objects_v2", Params={"Bucket": bucket})
    for seconds in ("0", "604801", "-1", "x", ""):
        link = made.replace("X-Amz-Expires=3600", f"X-Amz-Expires={seconds}")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(link)
        assert b"AuthorizationQueryParametersError" in caught.value.read()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, ""),
        ({"x-amz-meta-a": "unsigned"}, "AccessDenied"),
        ({"authorization": "AWS id:signature"}, "InvalidRequest"),
        ({"authorization": "AWS4-HMAC-SHA256 Credential=x"}, "AuthorizationHeaderMalformed"),
        ({"x-amz-date": "20200101T000000Z"}, "RequestTimeTooSkewed"),
        ({"x-amz-date": "never"}, "AccessDenied"),
        ({"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}, "SignatureDoesNotMatch"),
        ({"host": "elsewhere"}, "SignatureDoesNotMatch"),
        ({"x-amz-security-token": "x"}, "InvalidToken"),
    ],
)
def test_a_changed_head_is_refused(
    world: World, bucket: str, change: dict[str, str], code: str
) -> None:
    """Whatever of a signed head is changed afterwards, the request is refused by its code."""
    headers = {"host": HOST}
    headers |= sign_request(world.key, "GET", f"/{bucket}", "list-type=2", headers, b"")
    request = Request("GET", f"/{bucket}", "list-type=2", Headers((headers | change).items()))
    assert Answer(world.gateway.handle(request)).code == code


@pytest.mark.parametrize(
    ("minutes", "code"),
    [(14, ""), (-14, ""), (16, "RequestTimeTooSkewed"), (-16, "RequestTimeTooSkewed")],
)
def test_clocks_that_differ(world: World, bucket: str, minutes: int, code: str) -> None:
    """A quarter of an hour is allowed, to either side."""
    there = Gateway(world.store, clock=lambda: datetime.now(UTC) + timedelta(minutes=minutes))
    headers = {"host": HOST}
    headers |= sign_request(world.key, "GET", f"/{bucket}", "list-type=2", headers, b"")
    request = Request("GET", f"/{bucket}", "list-type=2", Headers(headers.items()))
    assert Answer(there.handle(request)).code == code


def test_the_host_must_be_signed(world: World, bucket: str) -> None:
    """A signature without the host would be good for every host."""
    now = datetime.now(UTC)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    headers = {"host": HOST, "x-amz-date": stamp, "x-amz-content-sha256": EMPTY}
    for signed, code in ((["host"], ""), ([], "AccessDenied")):
        names = sorted([*signed, "x-amz-content-sha256", "x-amz-date"])
        scope = Scope(world.key.access_key_id, day, "eu-west-9", "s3")
        request = Request("GET", f"/{bucket}", "", Headers(headers.items()))
        (text, *_) = canonical_requests(request, [], names, EMPTY)
        key = derive_key(world.key.secret_access_key, day, scope.region, scope.service)
        value = (
            f"AWS4-HMAC-SHA256 Credential={scope.access_key_id}/{scope}, "
            f"SignedHeaders={';'.join(names)}, Signature={sign_canonical(key, stamp, scope, text)}"
        )
        sent = Headers((headers | {"authorization": value}).items())
        assert Answer(world.gateway.handle(replace(request, headers=sent))).code == code


def test_strangers_are_refused(world: World, bucket: str) -> None:
    """No signature, an unknown key, a wrong secret: each has its own code, none repeats the id."""
    assert world.ask("GET", f"/{bucket}", sign=False).code == "AccessDenied"
    stranger = replace(world.key, access_key_id="CQNOBODY")
    refused = world.ask("GET", f"/{bucket}", key=stranger)
    assert refused.code == "InvalidAccessKeyId"
    assert b"CQNOBODY" not in refused.body
    wrong = replace(world.key, secret_access_key="wrong")
    assert world.ask("GET", f"/{bucket}", key=wrong).code == "SignatureDoesNotMatch"


@pytest.mark.parametrize(
    "path", ["/%41", "/a%20b", "/a+b", "//x", "/x//", "/../x", "/%C3%BC", "/x%2Fy"]
)
def test_the_path_is_signed_as_it_is_sent(world: World, bucket: str, path: str) -> None:
    """Names are neither normalised nor encoded twice on the way to the signature."""
    assert world.ask("PUT", f"/{bucket}{path}", body=b"x").status == 200
    assert world.ask("GET", f"/{bucket}{path}").body == b"x"


def test_names_of_the_query_need_no_value(world: World, bucket: str) -> None:
    """Names of the query without a value are the same with and without the sign of equality."""
    for query in ("location", "location="):
        assert world.ask("GET", f"/{bucket}", query).status == 200
