"""The one table from S3's error codes to ours."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from calque.errors import (
    AlreadyExists,
    CalqueError,
    ConditionNotMatch,
    ConfigInvalid,
    IntegrityError,
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
from calque.operator.http.body import NothingLeft
from calque.operator.http.redact import first_line
from calque.operator.services.s3.replies import leaves

_CODES: Mapping[type[CalqueError], str] = {
    NotFound: """
        NoSuchAnnotation NoSuchKey NoSuchBucket NoSuchUpload NoSuchVersion NoSuchBucketPolicy
        NoSuchLifecycleConfiguration NoSuchTagSet NoSuchTagSetError NoSuchAccessPoint
        NoSuchWebsiteConfiguration NoSuchCORSConfiguration NoSuchConfiguration
        NoSuchObjectLockConfiguration ObjectLockConfigurationNotFoundError
        ReplicationConfigurationNotFoundError ServerSideEncryptionConfigurationNotFoundError
        NoSuchPublicAccessBlockConfiguration NoSuchAsyncRequest NoSuchMultiRegionAccessPoint
        NoSuchOutpost NotFound         OwnershipControlsNotFoundError
    """,
    AlreadyExists: """
        BucketAlreadyExists BucketAlreadyOwnedByYou
    """,
    ConditionNotMatch: """
        PreconditionFailed ConditionalRequestConflict NotModified
        IdempotencyParameterMismatch BucketNotEmpty
    """,
    PermissionDenied: """
        AccessDenied AccountProblem AllAccessDisabled InvalidAccessKeyId
        SignatureDoesNotMatch InvalidSecurity InvalidToken ExpiredToken TokenRefreshRequired
        NotSignedUp InvalidPayer CrossLocationLoggingProhibited RequestTimeTooSkewed
        MissingSecurityHeader MissingSecurityElement CredentialsNotSupported
        MissingAuthenticationToken AccessPointNotOwnedByYou UnauthorizedAccess
        AuthorizationHeaderMissing InvalidTokenId
        KMS.AccessDeniedException KMS.DisabledException
        KMS.NotFoundException KMS.InvalidKeyUsageException KMS.KMSInvalidStateException
        KMS.InvalidStateException ServiceNotEnabledForOrg RequestExpired     """,
    ConfigInvalid: """
        PermanentRedirect AuthorizationHeaderMalformed IllegalLocationConstraintException
        IncorrectEndpoint InvalidRegion UnexpectedIPError Redirect TemporaryRedirect
        InvalidLocationConstraint InvalidEndpoint AuthorizationQueryParametersError
        InvalidHostHeader MovedPermanently
    """,
    InvalidInput: """
        AnnotationNameTooLong InvalidAnnotationName InvalidPrefix UnsupportedMediaType
        InvalidArgument InvalidBucketName InvalidRange InvalidRequest InvalidURI InvalidTag
        InvalidPart InvalidPartOrder InvalidPartNumber EntityTooSmall EntityTooLarge
        KeyTooLong KeyTooLongError MalformedXML MalformedPOSTRequest MalformedACLError
        MetadataTooLarge MissingContentLength MissingRequestBodyError
        MaxMessageLengthExceeded MaxPostPreDataLengthExceededError UserKeyMustBeSpecified
        MissingAttachment InvalidStorageClass InvalidEncryptionAlgorithmError
        InvalidTargetBucketForLogging InvalidPolicyDocument MalformedPolicy TooManyParts
        TooManyBuckets UnresolvableGrantByEmailAddress AmbiguousGrantByEmailAddress
        IncompleteBody InlineDataTooLarge InvalidAddressingHeader InvalidSOAPRequest
        RequestIsNotMultiPartContent RequestHeaderSectionTooLarge
        RequestTorrentOfBucketError InvalidWriteOffset EncryptionTypeMismatch
        InvalidChunkSizeError InvalidAttributeName InvalidBucketState InvalidACL
        InvalidObjectName MalformedDate InvalidCopySource InvalidCopySourceRange
        InvalidDigestAlgorithm UnsupportedArgument MalformedTrailerError
        IncorrectNumberOfFilesInPostRequest InvalidTagError MalformedInput             """,
    IntegrityError: """
        BadDigest InvalidDigest XAmzContentSHA256Mismatch XAmzContentChecksumMismatch
        ChecksumMismatch InvalidChecksum BadChecksum
    """,
    Unsupported: """
        NotImplemented MethodNotAllowed UnsupportedOperation UnsupportedSignature
        InvalidObjectState ObjectNotInActiveTierError ObjectAlreadyInActiveTierError
        RestoreAlreadyInProgress NotDeviceOwnerError
    """,
    ResourceExhausted: """
        AnnotationLimitExceeded
        ServiceQuotaExceeded QuotaExceeded InsufficientStorage XMinioStorageFull
    """,
    RateLimited: """
        SlowDown TooManyRequests RequestLimitExceeded BandwidthLimitExceeded Throttling
        ThrottlingException RequestThrottled RequestThrottledException Busy
    """,
    Unavailable: """
        InternalError ServiceUnavailable OperationAborted InternalFailure
        InternalServerError ClientTokenConflict BadGateway XMinioServerNotInitialized
        ServerNotInitialized
    """,
    TimedOut: """
        RequestTimeout RequestTimedOut GatewayTimeout
    """,
}

CODES: Mapping[str, type[CalqueError]] = MappingProxyType(
    {code: kind for kind, codes in _CODES.items() for code in codes.split()}
)
"""Every code that S3, or a server like it, is known to send."""

_STATUSES: Mapping[int, type[CalqueError]] = MappingProxyType(
    {
        301: ConfigInvalid,
        307: ConfigInvalid,
        400: InvalidInput,
        401: PermissionDenied,
        403: PermissionDenied,
        404: NotFound,
        405: Unsupported,
        408: TimedOut,
        409: ConditionNotMatch,
        411: InvalidInput,
        412: ConditionNotMatch,
        413: InvalidInput,
        416: InvalidInput,
        429: RateLimited,
        500: Unavailable,
        501: Unsupported,
        502: Unavailable,
        503: Unavailable,
        504: TimedOut,
        507: ResourceExhausted,
    }
)

_HINTS: Mapping[str, str] = {
    "NoSuchBucket": "Check the bucket's name, and that the endpoint is the right one.",
    "InvalidAccessKeyId": "The access key is not known there: check AWS_ACCESS_KEY_ID or profile.",
    "SignatureDoesNotMatch": "The secret key is wrong: check AWS_SECRET_ACCESS_KEY or the profile.",
    "ExpiredToken": "The session has expired: log in again.",
    "InvalidToken": "The session token is not valid: check AWS_SESSION_TOKEN.",
    "RequestTimeTooSkewed": "This machine's clock is wrong: set it.",
    "AccessDenied": "These credentials may not do this: ask for the permission, or use others.",
    "PreconditionFailed": "The condition on source or target is false; nothing was changed.",
    "InvalidObjectState": "The object is archived: restore it first.",
}


_BARE_400 = {
    True: "The server says no more. The session may have expired: log in again.",
    False: "The server says no more. Credentials that have expired, a wrong region or a proxy "
    "before the server answer so.",
}


class Refusal(Exception):
    """S3 refused a request: its status, code and words, the region that it names, and, of a range
    that cannot be served, how large the object is."""

    def __init__(
        self, status: int, code: str, words: str, region: str | None, size: int | None = None
    ) -> None:
        told = f"{code or 'refused'} ({status})"
        super().__init__(f"{told}: {words}" if words else told)
        self.status = status
        self.code = code
        self.region = region
        self.size = size


def refusal_of(status: int, headers: Mapping[str, str], document: bytes) -> Refusal:
    """Read an error document; HEAD has none, and some proxies send none of S3's."""
    fields = leaves(document) if b"<Code>" in document else {}
    region = headers.get("x-amz-bucket-region") or fields.get("Region")
    size = NothingLeft.of(headers).size
    if (told := fields.get("ActualObjectSize", "")).isdecimal() and len(told) < 20:
        size = int(told)
    words = first_line(fields.get("Message", ""))
    return Refusal(status, fields.get("Code", ""), words, region, size)


def error_of(
    refusal: Refusal,
    location: str,
    *,
    retry_after: float | None = None,
    by_session: bool = False,
) -> CalqueError:
    """The error that a refusal becomes; a code that nobody knows goes by its status.

    ``by_session``: who asked has keys that end. When they have, the answer to a HEAD is 400 and
    not a word more.
    """
    if refusal.status == 400 and not refusal.code and not refusal.region:
        denied = PermissionDenied if by_session else InvalidInput
        return denied(f"{location}: {refusal}", hint=_BARE_400[by_session])
    kind = CODES.get(refusal.code) or _STATUSES.get(refusal.status)
    if kind is None:
        kind = Unavailable if refusal.status >= 500 else Unexpected
    error = kind(f"{location}: {refusal}", hint=_HINTS.get(refusal.code), retry_after=retry_after)
    if refusal.region and kind in (ConfigInvalid, InvalidInput):
        return ConfigInvalid(
            f"{location}: the bucket is in the region {refusal.region}, not in the one it was "
            "asked for in",
            hint=f"Say region={refusal.region}, or set AWS_REGION={refusal.region}.",
        )
    # The server waited for our bytes in vain; it says 400, yet the same request may pass.
    if refusal.code == "RequestTimeout":
        error.retryable = True
    return error
