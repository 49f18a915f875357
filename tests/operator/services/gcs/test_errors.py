"""The error table, and the errors a user meets first."""

import re
from pathlib import Path

import pytest

from calque.errors import (
    CalqueError,
    NotFound,
    PermissionDenied,
    RateLimited,
    Unavailable,
    Unexpected,
)
from calque.operator import Operator
from calque.operator.http.exchange import Answer
from calque.operator.services.gcs.errors import REASONS, STATUSES, error_of
from tests.servers import gcs_fake
from tests.servers.gcs_fake import GcsFake
from tests.servers.process import free_ports

# Every reason that Google's page on JSON API errors names.
DOCUMENTED = [
    "mediaDownloadRedirect",
    "notModified",
    "temporaryRedirect",
    "badRequest",
    "badRequestException",
    "cloudKmsBadKey",
    "cloudKmsCannotChangeKeyName",
    "cloudKmsDecryptionKeyNotFound",
    "cloudKmsDisabledKey",
    "cloudKmsEncryptionKeyNotFound",
    "cloudKmsKeyLocationNotAllowed",
    "customerEncryptionAlgorithmIsInvalid",
    "customerEncryptionKeyFormatIsInvalid",
    "customerEncryptionKeyIsIncorrect",
    "customerEncryptionKeySha256IsInvalid",
    "invalid",
    "invalidAltValue",
    "invalidArgument",
    "invalidParameter",
    "notDownload",
    "notUpload",
    "parseError",
    "pushChannelIdInvalid",
    "pushChannelIdNotUnique",
    "pushWebhookUrlNoHostOrAddress",
    "pushWebhookUrlNotHttps",
    "required",
    "resourceIsEncryptedWithCustomerEncryptionKey",
    "resourceNotEncryptedWithCustomerEncryptionKey",
    "turnedDown",
    "userProjectInconsistent",
    "userProjectInvalid",
    "userProjectMissing",
    "wrongUrlForUpload",
    "authenticationRequiredRequesterPays",
    "authError",
    "lockedDomainExpired",
    "pushWebhookUrlUnauthorized",
    "accountDisabled",
    "countryBlocked",
    "forbidden",
    "insufficientPermissions",
    "objectUnderActiveHold",
    "rateLimitExceeded",
    "retentionPolicyNotMet",
    "sslRequired",
    "stopChannelCallerNotOwner",
    "usageLimits.accessNotConfigured",
    "userProjectAccessDenied",
    "userProjectAccountProblem",
    "userRateLimitExceeded",
    "quotaExceeded",
    "notFound",
    "methodNotAllowed",
    "uploadBrokenConnection",
    "conflict",
    "gone",
    "conditionNotMet",
    "orgPolicyConstraintFailed",
    "uploadTooLarge",
    "requestedRangeNotSatisfiable",
    "usageLimits.rateLimitExceeded",
    "backendError",
    "internalError",
    "gatewayTimeout",
]


def body(reason: str, message: str = "m") -> bytes:
    return (
        f'{{"error": {{"code": 1, "message": "{message}", "errors": [{{"reason": "{reason}"}}]}}}}'
    ).encode()


@pytest.mark.parametrize("reason", DOCUMENTED)
def test_no_documented_reason_is_unmapped(reason: str) -> None:
    """Each has an error of ours, and only redirects are unexpected."""
    kind = REASONS[reason]
    assert issubclass(kind, CalqueError)
    assert (kind is Unexpected) == ("edirect" in reason)


def test_every_reason_of_the_fake_is_known() -> None:
    """What the fake may answer is in the table too."""
    folder = Path(gcs_fake.__file__).parent
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    used = set(re.findall(r'ApiError\(\s*\d+, "(\w+)"', text))
    assert len(used) > 5
    assert used <= set(REASONS)


@pytest.mark.parametrize("status", sorted(STATUSES))
def test_a_status_without_a_body_is_mapped(status: int) -> None:
    """Proxies and load balancers send bare statuses."""
    error = error_of(Answer(status, {}, b""), "gs://b/o", "stat")
    assert type(error) is STATUSES[status]
    assert "gs://b/o" in error.message


def test_unknown_answers() -> None:
    """An unknown 5xx may be retried; an unknown 4xx is unexpected."""
    assert error_of(Answer(599, {}, b"<html>"), "gs://b/o", "stat").retryable
    assert type(error_of(Answer(418, {}, b""), "gs://b/o", "stat")) is Unexpected


def test_a_rate_limit_is_not_a_lack_of_rights() -> None:
    """403 with a rate reason is retried, after what the server asks for."""
    answer = Answer(403, {"retry-after": "7"}, body("userRateLimitExceeded"))
    error = error_of(answer, "gs://b/o", "copy to")
    assert type(error) is RateLimited
    assert (error.retryable, error.retry_after) == (True, 7.0)


def test_a_missing_bucket(near: Operator, fake: GcsFake) -> None:
    """Every verb says that the bucket is missing, and delete does not swallow it."""
    gone = Operator.from_uri("gs://nowhere", endpoint=fake.endpoint, anonymous=True)
    near.write("x", b"1")
    for verb in (
        lambda: gone.stat("x"),
        lambda: list(gone.list()),
        lambda: gone.write("x", b"1"),
        lambda: gone.delete("x"),
        lambda: gone.read("x"),
        lambda: near.copy("x", "y", into=gone),
    ):
        with pytest.raises(NotFound, match="bucket") as raised:
            verb()
        assert raised.value.hint or "nowhere" in raised.value.message


def test_an_unreachable_endpoint() -> None:
    """Unavailable, naming the endpoint and what to check."""
    (port,) = free_ports(1)
    operator = Operator.from_uri(
        "gs://b", layers=(), endpoint=f"http://127.0.0.1:{port}", anonymous=True
    )
    with pytest.raises(Unavailable, match=str(port)) as raised:
        operator.stat("x")
    assert "endpoint" in (raised.value.hint or "")


def test_missing_and_wrong_credentials() -> None:
    """Anonymous where a login is needed, and a token that is not valid: PermissionDenied."""
    with GcsFake(require_token=True) as fake:
        fake.make_bucket("b")
        nobody = Operator.from_uri("gs://b", endpoint=fake.endpoint, anonymous=True)
        wrong = Operator.from_uri("gs://b", endpoint=fake.endpoint, token="ya29.sesame")
        for operator in (nobody, wrong):
            with pytest.raises(PermissionDenied) as raised:
                operator.stat("x")
            assert raised.value.hint
            assert "sesame" not in str(raised.value)
        right = Operator.from_uri("gs://b", endpoint=fake.endpoint, token=fake.issue_token())
        right.write("x", b"1")
        assert right.read("x") == b"1"
