"""What goes wrong, in the words of S3: codes, their statuses, and one table from our errors."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from types import MappingProxyType

from calque import errors
from calque.errors import CalqueError

STATUS: Mapping[str, int] = MappingProxyType(
    {
        "AccessDenied": 403,
        "AuthorizationHeaderMalformed": 400,
        "AuthorizationQueryParametersError": 403,
        "BadDigest": 400,
        "BadRequest": 400,
        "BucketAlreadyExists": 409,
        "BucketAlreadyOwnedByYou": 409,
        "BucketNotEmpty": 409,
        "ConditionalRequestConflict": 409,
        "EntityTooLarge": 400,
        "EntityTooSmall": 400,
        "IncompleteBody": 400,
        "InsufficientStorage": 507,
        "InternalError": 500,
        "InvalidAccessKeyId": 403,
        "InvalidArgument": 400,
        "InvalidBucketName": 400,
        "InvalidDigest": 400,
        "InvalidPart": 400,
        "InvalidPartNumber": 416,
        "InvalidPartOrder": 400,
        "InvalidPolicyDocument": 400,
        "InvalidRange": 416,
        "InvalidRequest": 400,
        "InvalidStorageClass": 400,
        "InvalidTag": 400,
        "InvalidToken": 400,
        "InvalidURI": 400,
        "KeyTooLongError": 400,
        "MalformedPOSTRequest": 400,
        "MalformedXML": 400,
        "MalformedTrailerError": 400,
        "MaxMessageLengthExceeded": 400,
        "MaxPostPreDataLengthExceeded": 400,
        "MetadataTooLarge": 400,
        "MethodNotAllowed": 405,
        "MissingContentLength": 411,
        "MissingFields": 400,
        "MissingSecurityHeader": 400,
        "NoSuchBucket": 404,
        "NoSuchCORSConfiguration": 404,
        "NoSuchKey": 404,
        "NoSuchLifecycleConfiguration": 404,
        "NoSuchUpload": 404,
        "NotImplemented": 501,
        "NotModified": 304,
        "PreconditionFailed": 412,
        "RequestTimeTooSkewed": 403,
        "RequestTimeout": 400,
        "ServiceUnavailable": 503,
        "SignatureDoesNotMatch": 403,
        "SlowDown": 503,
        "UserKeyMustBeSpecified": 400,
        "XAmzContentSHA256Mismatch": 400,
    }
)

CODES: Mapping[type[CalqueError], str] = MappingProxyType(
    {
        errors.CalqueError: "InternalError",
        errors.InvalidInput: "InvalidArgument",
        errors.ConfigInvalid: "InternalError",
        errors.IsADirectory: "InvalidArgument",
        errors.IsSameFile: "InvalidRequest",
        errors.PathEscape: "InvalidURI",
        errors.StatementInvalid: "InvalidRequest",
        errors.CheckpointInvalid: "InvalidRequest",
        errors.NotFound: "NoSuchKey",
        errors.AlreadyExists: "PreconditionFailed",
        errors.ConditionNotMatch: "PreconditionFailed",
        errors.FailedPrecondition: "ConditionalRequestConflict",
        errors.PermissionDenied: "AccessDenied",
        errors.Unsupported: "NotImplemented",
        errors.MissingExtra: "NotImplemented",
        errors.ResourceExhausted: "InsufficientStorage",
        errors.IntegrityError: "InternalError",
        errors.DataError: "InvalidRequest",
        errors.LoadAborted: "InvalidRequest",
        errors.Aborted: "ServiceUnavailable",
        errors.Unavailable: "ServiceUnavailable",
        errors.RateLimited: "SlowDown",
        errors.TimedOut: "ServiceUnavailable",
        errors.Unexpected: "InternalError",
    }
)
"""Every class of our tree; what no row knows better is looked up by its nearest ancestor."""

_TRY_AGAIN = "The server cannot do this now. Please try again."
_UNTOLD = {
    "InternalError": "We encountered an internal error. Please try again.",
    "ServiceUnavailable": _TRY_AGAIN,
}
"""Codes of which only the owner of the server is told more, by its log: files, nodes."""
_BUSY = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What the system has too little of for a while; a disk stays full."""


class S3Error(CalqueError):
    """An answer that S3 has a code for. ``fields`` are further elements of its document."""

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        fields: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message or code)
        self.code = code
        self.fields = dict(fields or {})
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        return STATUS.get(self.code, 400)


class ClientGone(S3Error):
    """The client went away in the middle of its request: nobody reads the answer."""

    def __init__(self, message: str = "the client closed the connection") -> None:
        super().__init__("RequestTimeout", message)


def to_s3_error(error: CalqueError) -> S3Error:
    """One of ours as S3 would say it; what went wrong inside is not told to strangers."""
    if isinstance(error, S3Error):
        return error
    cause = error.__cause__
    number = cause.errno if isinstance(cause, OSError) else None
    code = next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)
    if number in _BUSY:
        code = "SlowDown"
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    is_inside = code in _UNTOLD or (number is not None and STATUS[code] > 500)
    return S3Error(
        code, _UNTOLD.get(code, _TRY_AGAIN) if is_inside else error.message, headers=headers
    )


def not_implemented(what: str) -> S3Error:
    """501, by the name of what is not offered."""
    return S3Error("NotImplemented", f"This gateway does not offer {what}.")
