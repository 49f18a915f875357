"""Browsers: forms with a policy, rules for other origins, and their preflights."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from calque.gateway.body import form
from tests.gateway.test_gateway import refused
from tests.gateway.world import World

DATA = b"a file\r\n--with lines" * 20_000


def post(url: str, fields: dict[str, str], data: bytes = DATA) -> requests.Response:
    """A form as a browser sends it: the file is last."""
    files = {"file": ("cat.txt", data, "text/plain")}
    return requests.post(url, data=fields, files=files, timeout=120, allow_redirects=False)


def code_of(answer: requests.Response) -> str:
    return answer.text.partition("<Code>")[2].partition("</Code>")[0]


def test_a_form_of_boto3(world: World, bucket: str) -> None:
    """The file goes under the key, with the metadata that the policy allows."""
    client = world.client(signature_version="s3v4")
    made = client.generate_presigned_post(
        bucket,
        "up/${filename}",
        Fields={"x-amz-meta-a": "ü", "Content-Type": "text/x"},
        Conditions=[
            {"x-amz-meta-a": "ü"},
            ["starts-with", "$Content-Type", "text/"],
            ["content-length-range", 0, len(DATA)],
        ],
    )
    assert post(made["url"], made["fields"]).status_code == 204
    got = client.get_object(Bucket=bucket, Key="up/cat.txt")
    assert got["Body"].read() == DATA
    assert got["ETag"] == f'"{hashlib.md5(DATA).hexdigest()}"'
    assert got["ContentType"] == "text/x"
    too_long = post(made["url"], made["fields"], DATA + b"!")
    assert (too_long.status_code, code_of(too_long)) == (400, "EntityTooLarge")
    assert client.get_object(Bucket=bucket, Key="up/cat.txt")["Body"].read() == DATA


def signed(world: World, policy: dict[str, Any], **fields: str) -> dict[str, str]:
    """A form signed with Version 2, as old pages are."""
    text = base64.b64encode(json.dumps(policy).encode()).decode()
    made = hmac.digest(world.key.secret_access_key.encode(), text.encode(), "sha1")
    return {
        "AWSAccessKeyId": world.key.access_key_id,
        "policy": text,
        "signature": base64.b64encode(made).decode(),
        **fields,
    }


def policy_of(bucket: str, *conditions: Any, minutes: int = 10) -> dict[str, Any]:
    until = datetime.now(UTC) + timedelta(minutes=minutes)
    return {
        "expiration": until.isoformat().replace("+00:00", "Z"),
        "conditions": [{"bucket": bucket}, ["starts-with", "$key", "k"], *conditions],
    }


def test_what_a_policy_refuses(world: World, bucket: str) -> None:
    """Expired, missing, contradicted or forged: 403 and nothing stored."""
    url = f"{world.url}/{bucket}"
    good = policy_of(bucket)
    cases = [
        ({"key": "k"}, "AccessDenied"),
        (signed(world, policy_of(bucket, minutes=-1), key="k"), "AccessDenied"),
        (signed(world, policy_of("another"), key="k"), "AccessDenied"),
        (signed(world, good, key="other"), "AccessDenied"),
        (signed(world, good, key="k", acl="private"), "AccessDenied"),
        (signed(world, policy_of(bucket, ["eq", "$x-amz-meta-a", "1"]), key="k"), "AccessDenied"),
        ({**signed(world, good, key="k"), "signature": "x"}, "SignatureDoesNotMatch"),
        (signed(world, good), "InvalidArgument"),
        (without(signed(world, good, key="k"), "signature"), "InvalidArgument"),
        (signed(world, {**good, "conditions": good["conditions"][1:]}, key="k"), "AccessDenied"),
        (signed(world, policy_of(bucket), key="k" * 1025), "KeyTooLongError"),
        (
            signed(world, policy_of(bucket), key="k", **{"x-amz-checksum-crc32": "AAAAAA=="}),
            "BadDigest",
        ),
        (
            signed(world, policy_of(bucket), key="k", **{"x-amz-checksum-crc32": "sailor"}),
            "InvalidDigest",
        ),
        *(
            (signed(world, {**good, "expiration": moment}, key="k"), "InvalidPolicyDocument")
            for moment in ("2126-01-01 00:00:00+00:00", "2126-01-01", "20991231T000000Z", "x", 5)
        ),
        *(
            (
                signed(world, policy_of(bucket, ["content-length-range", *sizes]), key="k"),
                "InvalidPolicyDocument",
            )
            for sizes in ((False, True), (-1, 5), ("a", "b"), (0, 1e300), (None, None))
        ),
        (signed(world, {"conditions": []}, key="k"), "InvalidPolicyDocument"),
        (signed(world, policy_of(bucket, ["what", "$a", "b"]), key="k"), "InvalidPolicyDocument"),
        (
            signed(world, policy_of(bucket, ["content-length-range", 10**9, 10**10]), key="k"),
            "EntityTooSmall",
        ),
    ]
    for fields, code in cases:
        answer = post(url, fields)
        assert code_of(answer) == code, (fields, answer.text)
    assert list(world.project.list_objects(bucket)) == []
    assert list(world.project.list_pending(bucket)) == []


def without(fields: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in fields.items() if key != name}


def test_checksums_of_forms(world: World, bucket: str) -> None:
    """A checksum needs no condition of the policy: the bytes themselves are held against it."""
    right = base64.b64encode(hashlib.sha256(DATA).digest()).decode()
    fields = signed(world, policy_of(bucket), key="k", **{"x-amz-checksum-sha256": right})
    assert post(f"{world.url}/{bucket}", fields).status_code == 204
    got = world.client().head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert got["ChecksumSHA256"] == right


PART = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\nv\r\n'


def test_fields_of_forms_have_an_end(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither many, nor long, nor repeated fields are taken, nor such that never come to an end,
    and strangers who send them leave room for others."""
    headers = {"content-type": "multipart/form-data; boundary=x"}

    def send(body: bytes) -> str:
        return world.ask("POST", f"/{bucket}", "", headers, body, sign=False).code

    many = b"".join(PART % b"a%d" % number for number in range(300))
    tiny = b"--x\r\n\r\n\r\n" * 20_000
    assert send(many + PART % b"file" + b"--x--") == "MaxPostPreDataLengthExceeded"
    assert send(tiny) == "MalformedPOSTRequest"
    assert send(PART % b"a" + PART % b"A" + PART % b"file") == "MalformedPOSTRequest"
    long = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n' + b"a" * 200_000
    assert send(long + b"\r\n" + PART % b"file") == "MaxPostPreDataLengthExceeded"
    monkeypatch.setattr(form, "FIELDS_PATIENCE", -1.0)
    assert send(PART % b"a" + PART % b"file") == "RequestTimeout"
    monkeypatch.undo()
    monkeypatch.setattr(world.gateway, "_strangers", threading.BoundedSemaphore(1))
    with world.gateway._strangers:
        assert send(PART % b"a" + PART % b"file") == "SlowDown"
    assert send(PART % b"a" + PART % b"file") == "AccessDenied"


def test_how_a_form_is_answered(world: World, bucket: str) -> None:
    """204 by default, 200, 201 with a document, or a redirect that tells what was stored."""
    url = f"{world.url}/{bucket}"
    for status in ("200", "201", "204"):
        policy = policy_of(bucket, {"success_action_status": status})
        answer = post(url, signed(world, policy, key="k1", success_action_status=status), b"x")
        assert answer.status_code == int(status)
        assert ("<Key>k1</Key>" in answer.text) == (status == "201")
    there = "http://page.test/done?a=1"
    policy = policy_of(bucket, {"success_action_redirect": there})
    answer = post(url, signed(world, policy, key="k", success_action_redirect=there), b"x")
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith(f"{there}&bucket={bucket}&key=k&etag=")
    for nowhere in ("http://[", "javascript:alert(1)", "http://a\u2028b", "//page.test"):
        policy = policy_of(bucket, {"success_action_redirect": nowhere})
        fields = signed(world, policy, key="k", success_action_redirect=nowhere)
        assert post(url, fields, b"x").status_code == 204


def test_credentials_of_forms(world: World, bucket: str) -> None:
    """A scope that is none, of another service or beyond ASCII: refused as such."""
    client = world.client(signature_version="s3v4")
    made = client.generate_presigned_post(bucket, "k")
    fields = made["fields"]
    mine = fields["x-amz-credential"]
    for other in ("x", "", mine.replace("/s3/", "/ec2/"), mine.replace("us-east-1", "\u6f22")):
        answer = post(made["url"], fields | {"x-amz-credential": other}, b"x")
        assert code_of(answer) == "AuthorizationQueryParametersError", other
    later = mine.replace("us-east-1", "us-east-2")
    assert (
        code_of(post(made["url"], fields | {"x-amz-credential": later})) == "SignatureDoesNotMatch"
    )


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b""),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"--x--\r\n"),
        ("multipart/form-data; boundary=x", b"--x\r\nnonsense"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nx',
        ),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\n" + b"a" * 3_000_000),
    ],
)
def test_broken_forms(world: World, bucket: str, kind: str, body: bytes) -> None:
    """400 or 403 in S3's words."""
    answer = world.ask("POST", f"/{bucket}", headers={"content-type": kind}, body=body, sign=False)
    assert answer.status in (400, 403)
    assert answer.code


RULES = {
    "CORSRules": [
        {
            "AllowedOrigins": ["https://*.page.test"],
            "AllowedMethods": ["GET", "PUT"],
            "AllowedHeaders": ["x-amz-*", "content-type"],
            "ExposeHeaders": ["ETag"],
            "MaxAgeSeconds": 100,
        }
    ]
}


def preflight(world: World, bucket: str, origin: str, method: str, headers: str = "") -> Any:
    asked = {"origin": origin, "access-control-request-method": method}
    if headers:
        asked["access-control-request-headers"] = headers
    return world.ask("OPTIONS", f"/{bucket}/k", headers=asked, sign=False)


def test_rules_for_other_origins(world: World, client: Any, bucket: str) -> None:
    """A preflight is answered by the rules of the bucket, and answers carry what browsers need."""
    refused("NoSuchCORSConfiguration", client.get_bucket_cors, Bucket=bucket)
    assert preflight(world, bucket, "https://a.page.test", "GET").status == 403
    client.put_bucket_cors(Bucket=bucket, CORSConfiguration=RULES)
    assert client.get_bucket_cors(Bucket=bucket)["CORSRules"] == RULES["CORSRules"]
    good = preflight(world, bucket, "https://a.page.test", "PUT", "X-Amz-Date, content-type")
    assert good.status == 200
    assert good.headers["access-control-allow-origin"] == "https://a.page.test"
    assert good.headers["access-control-allow-headers"] == "x-amz-date, content-type"
    assert good.headers["access-control-max-age"] == "100"
    assert preflight(world, bucket, "https://evil.test", "GET").status == 403
    assert preflight(world, bucket, "https://a.page.test", "DELETE").status == 403
    assert preflight(world, bucket, "https://a.page.test", "PUT", "cookie").status == 403
    answer = world.ask("GET", f"/{bucket}/none", headers={"origin": "https://a.page.test"})
    assert answer.status == 404
    assert answer.headers["access-control-allow-origin"] == "https://a.page.test"
    assert answer.headers["access-control-expose-headers"] == "ETag"
    other = world.ask("GET", f"/{bucket}", headers={"origin": "https://evil.test"})
    assert "access-control-allow-origin" not in other.headers
    client.delete_bucket_cors(Bucket=bucket)
    assert preflight(world, bucket, "https://a.page.test", "GET").status == 403


def test_rules_end_with_their_bucket(world: World, client: Any) -> None:
    """A bucket of the same name that is made later has no rules."""
    client.create_bucket(Bucket="short-lived")
    client.put_bucket_cors(Bucket="short-lived", CORSConfiguration=RULES)
    client.delete_bucket(Bucket="short-lived")
    client.create_bucket(Bucket="short-lived")
    refused("NoSuchCORSConfiguration", client.get_bucket_cors, Bucket="short-lived")
    assert preflight(world, "short-lived", "https://a.page.test", "GET").status == 403


def test_rules_that_are_none(world: World, bucket: str) -> None:
    """Rules that cannot be read are refused and change nothing."""
    rule = "<CORSRule><AllowedOrigin>*</AllowedOrigin>{}</CORSRule>"
    for body, code in (
        ("", "MalformedXML"),
        ("<CORSConfiguration/>", "MalformedXML"),
        (f"<CORSConfiguration>{rule.format('')}</CORSConfiguration>", "MalformedXML"),
        (
            "<CORSConfiguration>"
            + rule.format("<AllowedMethod>BREW</AllowedMethod>")
            + "</CORSConfiguration>",
            "InvalidRequest",
        ),
        (
            "<!DOCTYPE x [<!ENTITY a 'b'>]><CORSConfiguration>&a;</CORSConfiguration>",
            "MalformedXML",
        ),
    ):
        assert world.ask("PUT", f"/{bucket}", "cors", body=body.encode()).code == code
