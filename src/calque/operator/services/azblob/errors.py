"""The one table from what Azure Blob answers to our errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from types import MappingProxyType

from calque.errors import (
    AlreadyExists,
    CalqueError,
    ConditionNotMatch,
    IntegrityError,
    InvalidInput,
    NotFound,
    PermissionDenied,
    RateLimited,
    ResourceExhausted,
    TimedOut,
    Unavailable,
    Unsupported,
)
from calque.operator.http.exchange import Answer, retry_after
from calque.operator.http.redact import first_line
from calque.operator.services import statuses
from calque.operator.services.statuses import Kind, kind_of

_BY_KIND: Mapping[Kind, str] = {
    NotFound: """BlobNotFound ContainerNotFound FilesystemNotFound MessageNotFound ParentNotFound
        PathNotFound PreviousSnapshotNotFound QueueNotFound RenameDestinationParentPathNotFound
        ResourceNotFound ShareNotFound ShareSnapshotNotFound SourcePathNotFound""",
    ConditionNotMatch: """AppendPositionConditionNotMet BlobAlreadyExists BlobOverwritten
        ConditionNotMet MaxBlobSizeConditionNotMet SequenceNumberConditionNotMet
        SourceConditionNotMet TargetConditionNotMet UnauthorizedBlobOverwrite PathAlreadyExists
        PathConflict""",
    AlreadyExists: """AccountAlreadyExists ContainerAlreadyExists FilesystemAlreadyExists
        QueueAlreadyExists ResourceAlreadyExists ShareAlreadyExists""",
    PermissionDenied: """AccountIsDisabled AuthenticationFailed AuthorizationFailure
        AuthorizationPermissionMismatch AuthorizationProtocolMismatch
        AuthorizationResourceTypeMismatch AuthorizationServiceMismatch
        AuthorizationSourceIPMismatch CannotVerifyCopySource ContainerDisabled
        InsufficientAccountPermissions InvalidAuthenticationInfo KeyVaultAccessTokenCannotBeAcquired
        NoAuthenticationInformation PublicAccessNotPermitted QueueDisabled ReadOnlyAttribute
        ShareDisabled BlobImmutableDueToPolicy""",
    IntegrityError: "Crc64Mismatch Md5Mismatch",
    InvalidInput: """CannotChangeToLowerTier ContentLengthLargerThanTierLimit
        ContentLengthMustBeZero EmptyMetadataKey InfiniteLeaseDurationRequired InvalidBlobOrBlock
        InvalidBlobTier InvalidBlobType InvalidBlockId InvalidBlockList InvalidDestinationPath
        InvalidFileOrDirectoryPathName InvalidFlushPosition InvalidHeaderValue InvalidHttpVerb
        InvalidInput InvalidMarker InvalidMd5 InvalidMetadata InvalidOperation InvalidPageRange
        InvalidPropertyName InvalidQueryParameterValue InvalidRange InvalidRenameSourcePath
        InvalidResourceName InvalidSourceBlobType InvalidSourceBlobUrl
        InvalidSourceOrDestinationResourceType InvalidSourceUri InvalidUri
        InvalidVersionForPageBlobOperation InvalidXmlDocument InvalidXmlNodeValue MetadataTooLarge
        MissingContentLengthHeader MissingRequiredHeader MissingRequiredQueryParameter
        MissingRequiredXmlNode MultipleConditionHeadersNotSupported OutOfRangeInput
        OutOfRangeQueryParameterValue PreviousSnapshotCannotBeNewer RequestUrlFailedToParse
        ResourceTypeMismatch CannotDeleteFileOrDirectory DirectoryNotEmpty PopReceiptMismatch
        QueueNotEmpty CopyIdMismatch IncrementalCopyBlobMismatch
        IncrementalCopyOfEarlierSnapshotNotAllowed IncrementalCopyOfEarlierVersionSnapshotNotAllowed
        IncrementalCopySourceMustBeSnapshot NoPendingCopyOperation SequenceNumberIncrementTooLarge
        FileShareProvisionedBandwidthInvalid FileShareProvisionedIopsInvalid
        FileShareProvisionedStorageInvalid""",
    Unsupported: """BlobAccessTierNotSupportedForAccountType BlobTierInadequateForContentLength
        ConditionHeadersNotSupported CopyAcrossAccountsNotSupported FeatureVersionMismatch
        OperationNotAllowedOnIncrementalCopyBlob PreviousSnapshotOperationNotSupported
        ShareSnapshotOperationNotSupported UnsupportedHeader UnsupportedHttpVerb
        UnsupportedQueryParameter UnsupportedRestVersion UnsupportedXmlNode APINotImplemented
        ContainerQuotaDowngradeNotAllowed FileShareProvisionedBandwidthDowngradeNotAllowed
        FileShareProvisionedIopsDowngradeNotAllowed BlobArchived BlobNotArchived""",
    ResourceExhausted: """BlockCountExceedsLimit BlockListTooLong MessageTooLarge
        RequestBodyTooLarge SnapshotCountExceeded ShareSnapshotCountExceeded
        TotalSharesCountExceedsAccountLimit TotalSharesProvisionedBandwidthExceedsAccountLimit
        TotalSharesProvisionedCapacityExceedsAccountLimit
        TotalSharesProvisionedIopsExceedsAccountLimit""",
    # Somebody else holds it for now; a lease or a deletion ends.
    Unavailable: """AccountBeingCreated BlobBeingRehydrated ClientCacheFlushDelay
        ContainerBeingDeleted DeletePending DestinationPathIsBeingDeleted FileLockConflict
        FilesystemBeingDeleted InternalError LeaseAlreadyBroken LeaseAlreadyPresent
        LeaseIdMismatchWithBlobOperation LeaseIdMismatchWithContainerOperation
        LeaseIdMismatchWithLeaseOperation LeaseIdMissing LeaseIsAlreadyBroken
        LeaseIsBreakingAndCannotBeAcquired LeaseIsBreakingAndCannotBeChanged
        LeaseIsBrokenAndCannotBeRenewed LeaseLost LeaseNameMismatch
        LeaseNotPresentWithBlobOperation LeaseNotPresentWithContainerOperation
        LeaseNotPresentWithLeaseOperation PendingCopyOperation QueueBeingDeleted
        ShareBeingDeleted ShareHasSnapshots ShareSnapshotInProgress SharingViolation
        SnapshotsPresent SourcePathIsBeingDeleted SystemInUse""",
    RateLimited: "ServerBusy SnapshotOperationRateExceeded",
    TimedOut: "OperationTimedOut",
}

CODES: Mapping[str, Kind] = MappingProxyType(
    {code: kind for kind, codes in _BY_KIND.items() for code in codes.split()}
)

LEASED = frozenset(code for code in CODES if code.startswith("Lease"))
"""A lease is held until its holder lets go, which no retry hastens."""

STATUSES: Mapping[int, Kind] = MappingProxyType(
    {
        **statuses.STATUSES,
        409: ConditionNotMatch,
        503: RateLimited,
    }
)

_HINTS: Mapping[Kind, str] = MappingProxyType(
    {
        PermissionDenied: "Check the key, the signature's permissions and expiry, or the role of "
        "the identity on the account.",
        ConditionNotMatch: "The blob was created, replaced or deleted by another writer.",
    }
)
_CODE = re.compile(rb"<Code>([A-Za-z0-9]+)</Code>")
_MESSAGE = re.compile(rb"<Message>([^<\r\n]*)")


class ContainerMissing(NotFound):
    """Not the blob is missing but its container."""


def code_of(answer: Answer) -> str:
    """The service's error code; answers to HEAD carry it in a header only."""
    stated = answer.headers.get("x-ms-error-code")
    if stated:
        return stated
    found = _CODE.search(answer.body)
    return found[1].decode() if found else ""


def error_of(answer: Answer, location: str, verb: str) -> CalqueError:
    """The error for an answer that is no success, naming what was asked of which blob."""
    code = code_of(answer)
    kind = CODES.get(code) or kind_of(answer.status, STATUSES)
    if code == "ContainerNotFound":
        container = "/".join(location.split("/")[:4])
        return ContainerMissing(
            f"cannot {verb} {location}: the container {container} does not exist",
            hint="Check its name and the account; calque makes no containers.",
        )
    found = _MESSAGE.search(answer.body)
    words = first_line(unescape(found[1].decode("utf-8", "replace"))) if found else ""
    said = f": {words}" if words else ""
    return kind(
        f"cannot {verb} {location}: {answer.status} {code}{said}",
        hint=_HINTS.get(kind),
        retryable=False if code in LEASED else None,
        retry_after=retry_after(answer.headers),
    )
