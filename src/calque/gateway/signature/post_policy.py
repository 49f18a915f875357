"""The signed policy of a form: who may upload what, until when."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from calque.gateway.errors import S3Error
from calque.gateway.signature import canonical

# A checksum is held against the bytes themselves: nobody gains by adding one.
_FREE = frozenset({"policy", "x-amz-signature", "signature", "awsaccesskeyid", "file"}) | {
    f"x-amz-checksum-{name}" for name in ("crc32", "crc32c", "crc64nvme", "sha1", "sha256")
}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)", re.ASCII)
_LARGEST_SIZE = 5 * 1024**4


def verify_policy(
    fields: Mapping[str, str], find_secret: Callable[[str], str], now: datetime
) -> dict[str, Any]:
    """The policy of a form that was signed rightly; AccessDenied for a form without one."""
    policy = fields.get("policy")
    if not policy:
        raise S3Error("AccessDenied", "Access Denied: the form has no policy.")
    if "x-amz-signature" in fields:
        _verify_v4(fields, policy, find_secret)
    elif "signature" in fields and "awsaccesskeyid" in fields:
        secret = find_secret(fields["awsaccesskeyid"])
        made = hmac.digest(_bytes(secret), _bytes(policy), "sha1")
        _require_same(base64.b64encode(made).decode(), fields["signature"])
    else:
        raise S3Error("InvalidArgument", "Bucket POST must contain a field named 'Signature'.")
    document = _read_policy(policy)
    if now >= _expiration(document):
        raise _contradicted("Policy expired.")
    return document


def check_fields(
    policy: Mapping[str, Any], fields: Mapping[str, str], bucket: str
) -> tuple[int, int]:
    """Every condition holds, every field has one, and so has the bucket; the sizes that the file
    may have."""
    given = {**fields, "bucket": bucket}
    sizes = (0, _LARGEST_SIZE)
    met = set()
    for kind, name, value in map(_read_condition, policy["conditions"]):
        if kind == "content-length-range":
            sizes = (int(name), int(value))
            continue
        met.add(name)
        found = given.get(name, "")
        holds = found == value if kind == "eq" else _starts_with(name, found, value)
        if not holds:
            raise _contradicted(f'Policy Condition failed: ["{kind}", "${name}", "{value}"]')
    extra = sorted(
        name
        for name in given
        if name not in met and name not in _FREE and not name.startswith("x-ignore-")
    )
    if extra:
        raise _contradicted(f"Extra input fields: {', '.join(extra)}"[:300])
    return sizes


def _verify_v4(fields: Mapping[str, str], policy: str, find_secret: Callable[[str], str]) -> None:
    credential = fields.get("x-amz-credential", "")
    scope = canonical.parse_credential(credential) if credential.isascii() else None
    algorithm = fields.get("x-amz-algorithm")
    if scope is None or scope.service != "s3" or algorithm != canonical.ALGORITHM:
        raise S3Error(
            "AuthorizationQueryParametersError", "The credential of the form is malformed."
        )
    key = canonical.derive_key(
        find_secret(scope.access_key_id), scope.day, scope.region, scope.service
    )
    _require_same(hmac.digest(key, _bytes(policy), "sha256").hex(), fields["x-amz-signature"])


def _require_same(made: str, given: str) -> None:
    if not given.isascii() or not canonical.is_same(made, given):
        raise canonical.mismatch()


def _read_policy(text: str) -> dict[str, Any]:
    try:
        document = json.loads(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise _no_policy("Invalid JSON.") from error
    if not isinstance(document, dict) or not isinstance(document.get("conditions"), list):
        raise _no_policy("It needs a list of conditions.")
    return document


def _expiration(policy: Mapping[str, Any]) -> datetime:
    text = policy.get("expiration")
    if not isinstance(text, str) or not _MOMENT.fullmatch(text):
        raise _no_policy("Its expiration is no time as 2026-01-31T12:00:00Z.")
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise _no_policy("Its expiration is no time.") from error


def _read_condition(condition: Any) -> tuple[str, str, str]:
    """Kind, name in lower case, value."""
    if isinstance(condition, dict) and len(condition) == 1:
        ((name, value),) = condition.items()
        return "eq", str(name).lower(), str(value)
    if not isinstance(condition, list) or len(condition) != 3:
        raise _no_policy("A condition is neither a pair nor a list of three.")
    kind, name, value = condition
    kind = str(kind).lower()
    if kind == "content-length-range":
        if not all(_is_size(each) for each in (name, value)):
            raise _no_policy("A range of sizes needs two numbers.")
        return kind, str(name), str(value)
    if kind not in ("eq", "starts-with") or not str(name).startswith("$"):
        raise _no_policy(f"There is no condition {kind[:50]!r}.")
    return kind, str(name)[1:].lower(), str(value)


def _is_size(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) < 19
    return type(value) is int and value >= 0  # True is an int, too, and no size


def _starts_with(name: str, found: str, value: str) -> bool:
    if name == "content-type":  # several types, each of which must fit
        return all(each.strip().startswith(value) for each in found.split(","))
    return found.startswith(value)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _contradicted(why: str) -> S3Error:
    return S3Error("AccessDenied", f"Invalid according to Policy: {why}")


def _no_policy(why: str) -> S3Error:
    return S3Error("InvalidPolicyDocument", f"The content of the form's policy is invalid: {why}")
