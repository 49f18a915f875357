"""The one table from what GCS answers to our errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from calque.errors import (
    AlreadyExists,
    CalqueError,
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    PermissionDenied,
    RateLimited,
    ResourceExhausted,
    TimedOut,
    Unavailable,
    Unexpected,
    Unsupported,
)
from calque.operator.http.exchange import Answer, retry_after
from calque.operator.http.redact import first_line
from calque.operator.services import statuses
from calque.operator.services.statuses import Kind, kind_of

REASONS: Mapping[str, Kind] = MappingProxyType(
    {
        # 3xx that reach us: we never ask for what causes them.
        "mediaDownloadRedirect": Unexpected,
        "temporaryRedirect": Unexpected,
        "notModified": ConditionNotMatch,
        # 400
        "badRequest": InvalidInput,
        "badRequestException": InvalidInput,
        "cloudKmsBadKey": InvalidInput,
        "cloudKmsCannotChangeKeyName": InvalidInput,
        "cloudKmsDecryptionKeyNotFound": PermissionDenied,
        "cloudKmsDisabledKey": PermissionDenied,
        "cloudKmsEncryptionKeyNotFound": PermissionDenied,
        "cloudKmsKeyLocationNotAllowed": InvalidInput,
        "customerEncryptionAlgorithmIsInvalid": InvalidInput,
        "customerEncryptionKeyFormatIsInvalid": InvalidInput,
        "customerEncryptionKeyIsIncorrect": PermissionDenied,
        "customerEncryptionKeySha256IsInvalid": InvalidInput,
        "invalid": InvalidInput,
        "invalidAltValue": InvalidInput,
        "invalidArgument": InvalidInput,
        "invalidParameter": InvalidInput,
        "keyInvalid": PermissionDenied,
        "notDownload": InvalidInput,
        "notUpload": InvalidInput,
        "parseError": InvalidInput,
        "pushChannelIdInvalid": InvalidInput,
        "pushChannelIdNotUnique": InvalidInput,
        "pushWebhookUrlNoHostOrAddress": InvalidInput,
        "pushWebhookUrlNotHttps": InvalidInput,
        "required": InvalidInput,
        "resourceIsEncryptedWithCustomerEncryptionKey": Unsupported,
        "resourceNotEncryptedWithCustomerEncryptionKey": InvalidInput,
        "turnedDown": Unsupported,
        "userProjectInconsistent": InvalidInput,
        "userProjectInvalid": InvalidInput,
        "userProjectMissing": InvalidInput,
        "wrongUrlForUpload": InvalidInput,
        # 401
        "authError": PermissionDenied,
        "authenticationRequired": PermissionDenied,
        "authenticationRequiredRequesterPays": PermissionDenied,
        "lockedDomainExpired": PermissionDenied,
        "pushWebhookUrlUnauthorized": PermissionDenied,
        # 403
        "accountDisabled": PermissionDenied,
        "countryBlocked": PermissionDenied,
        "forbidden": PermissionDenied,
        "insufficientPermissions": PermissionDenied,
        "objectUnderActiveHold": PermissionDenied,
        "quotaExceeded": ResourceExhausted,
        "rateLimitExceeded": RateLimited,
        "retentionPolicyNotMet": PermissionDenied,
        "sslRequired": InvalidInput,
        "stopChannelCallerNotOwner": PermissionDenied,
        "accessNotConfigured": PermissionDenied,
        "usageLimits.accessNotConfigured": PermissionDenied,
        "usageLimits.rateLimitExceeded": RateLimited,
        "userProjectAccessDenied": PermissionDenied,
        "userProjectAccountProblem": PermissionDenied,
        "userRateLimitExceeded": RateLimited,
        # 404 and above
        "notFound": NotFound,
        "methodNotAllowed": Unsupported,
        "uploadBrokenConnection": Unavailable,
        "conflict": AlreadyExists,
        "gone": NotFound,
        "conditionNotMet": ConditionNotMatch,
        "orgPolicyConstraintFailed": PermissionDenied,
        "uploadTooLarge": ResourceExhausted,
        "requestedRangeNotSatisfiable": InvalidInput,
        "backendError": Unavailable,
        "internalError": Unavailable,
        "gatewayTimeout": TimedOut,
        "notImplemented": Unsupported,
    }
)

STATUSES: Mapping[int, Kind] = MappingProxyType(
    {
        **statuses.STATUSES,
        409: AlreadyExists,
        410: NotFound,
        499: Unavailable,
    }
)

_HINTS: Mapping[Kind, str] = MappingProxyType(
    {
        PermissionDenied: "Check which account asks and its role on the bucket.",
        ConditionNotMatch: "The object was created, replaced or deleted by another writer.",
        ResourceExhausted: "Raise the quota, or ask for less.",
    }
)


_NO_BUCKET = "The specified bucket does not exist"


class BucketMissing(NotFound):
    """Not the object is missing but its bucket."""


def error_of(answer: Answer, location: str, verb: str) -> CalqueError:
    """The error for an answer that is no success, naming what was asked of which object."""
    reason, message = _reason(answer)
    kind = _kind(answer.status, reason)
    said = f": {message}" if message else ""
    if kind is NotFound and is_missing_bucket(answer):
        bucket = "/".join(location.split("/")[:3])
        return BucketMissing(
            f"cannot {verb} {location}: the bucket {bucket} does not exist",
            hint="Check its name, and the endpoint if it is not Google's own.",
        )
    return kind(
        f"cannot {verb} {location}: {answer.status}{said}",
        hint=_HINTS.get(kind),
        retry_after=retry_after(answer.headers),
    )


def is_missing_bucket(answer: Answer) -> bool:
    """Whether a 404 means the bucket and not the object."""
    # A missing object is told as "No such object: bucket/key", and keys may be called anything.
    return answer.status == 404 and _reason(answer)[1].startswith(_NO_BUCKET)


def _kind(status: int, reason: str) -> Kind:
    # "required" is a missing parameter with 400 and a missing login with 401.
    if status == 401:
        return PermissionDenied
    # A rate limit that comes as 403 must not be taken for a lack of rights.
    known = REASONS.get(reason)
    return known if known is not None else kind_of(status, STATUSES)


def _reason(answer: Answer) -> tuple[str, str]:
    """The first reason and the message; a plain text body is the message."""
    try:
        error = json.loads(answer.body)["error"]
        details = error.get("errors") or [{}]
        return str(details[0].get("reason", "")), first_line(str(error.get("message", "")))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        text = first_line(answer.body[:1000].decode("utf-8", "replace"))
        return "", "" if text.startswith("<") else text
