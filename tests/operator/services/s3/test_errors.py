"""Every refusal has its error, and each says what to do next."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import botocore.session
import pytest

from calque.errors import (
    CalqueError,
    ConditionNotMatch,
    ConfigInvalid,
    InvalidInput,
    NotFound,
    PermissionDenied,
    RateLimited,
    Unavailable,
    Unexpected,
)
from calque.operator import Operator
from calque.operator.services.s3.credentials import BOTOCORE_ERRORS
from calque.operator.services.s3.credentials import error_of as mapped_botocore
from calque.operator.services.s3.errors import CODES, error_of, refusal_of
from tests.operator.http.clouds import answering, nowhere
from tests.operator.services.s3.conftest import Open
from tests.servers.process import free_ports
from tests.servers.proxy import Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server

DOCUMENTED = """
    AccessDenied AccountProblem AllAccessDisabled AmbiguousGrantByEmailAddress
    AuthorizationHeaderMalformed BadDigest BucketAlreadyExists BucketAlreadyOwnedByYou
    BucketNotEmpty ClientTokenConflict ConditionalRequestConflict CredentialsNotSupported
    CrossLocationLoggingProhibited EntityTooLarge EntityTooSmall ExpiredToken
    IllegalLocationConstraintException IncompleteBody InlineDataTooLarge InternalError
    InvalidAccessKeyId InvalidArgument InvalidBucketName InvalidBucketState InvalidDigest
    InvalidEncryptionAlgorithmError InvalidLocationConstraint InvalidObjectState InvalidPart
    InvalidPartOrder InvalidPayer InvalidPolicyDocument InvalidRange InvalidRegion InvalidRequest
    InvalidSecurity InvalidStorageClass InvalidTag InvalidTargetBucketForLogging InvalidToken
    InvalidURI KeyTooLongError MalformedACLError MalformedPOSTRequest MalformedXML
    MaxMessageLengthExceeded MetadataTooLarge MethodNotAllowed MissingContentLength
    MissingSecurityHeader NoSuchBucket NoSuchBucketPolicy NoSuchKey NoSuchLifecycleConfiguration
    NoSuchTagSet NoSuchUpload NoSuchVersion NotImplemented NotModified NotSignedUp
    OperationAborted PermanentRedirect PreconditionFailed Redirect RequestHeaderSectionTooLarge
    RequestIsNotMultiPartContent RequestTimeTooSkewed RequestTimeout RestoreAlreadyInProgress
    ServiceUnavailable SignatureDoesNotMatch SlowDown TemporaryRedirect TokenRefreshRequired
    TooManyBuckets TooManyParts UnexpectedIPError UnresolvableGrantByEmailAddress
    UnsupportedArgument UnsupportedSignature UserKeyMustBeSpecified XAmzContentSHA256Mismatch
    InvalidTagError InvalidPartNumber KeyTooLong InvalidCopySource
"""


def codes_of_the_model() -> Iterator[str]:
    """Every error shape in botocore's model of S3."""
    model = botocore.session.get_session().get_service_model("s3")
    for name in model.shape_names:
        shape = model.shape_for(name)
        if shape.metadata.get("exception"):
            yield shape.metadata.get("error", {}).get("code") or name


@pytest.mark.parametrize("code", sorted({*DOCUMENTED.split(), *codes_of_the_model()}))
def test_no_known_code_is_unmapped(code: str) -> None:
    """Whatever S3 documents or botocore's model names has its error."""
    assert code in CODES


def all_kinds(kind: type[Exception]) -> Iterator[type[Exception]]:
    for each in kind.__subclasses__():
        yield each
        yield from all_kinds(each)


def test_no_error_of_botocore_is_unmapped() -> None:
    """Every error class that botocore has falls under one of the table's."""
    kinds = [*all_kinds(botocore.exceptions.BotoCoreError), botocore.exceptions.ClientError]
    assert len(kinds) > 50
    for kind in kinds:
        assert any(issubclass(kind, known) for known in BOTOCORE_ERRORS), kind


def test_a_foreign_failure_stays_itself() -> None:
    """What is no error of botocore is not dressed up as one."""
    with pytest.raises(ZeroDivisionError):
        mapped_botocore(ZeroDivisionError(), "x")


def test_a_code_that_nobody_knows_goes_by_its_status() -> None:
    """A new code of tomorrow is still the right kind of error."""

    def kind(status: int) -> type[CalqueError]:
        document = b"<Error><Code>Brandnew</Code><Message>m</Message></Error>"
        return type(error_of(refusal_of(status, {}, document), "s3://b/k"))

    assert kind(404) is NotFound
    assert kind(403) is PermissionDenied
    assert kind(412) is ConditionNotMatch
    assert kind(429) is RateLimited
    assert kind(500) is kind(503) is kind(599) is Unavailable
    assert kind(418) is Unexpected


def test_a_missing_object_is_not_a_missing_bucket(op: Operator, open_at: Open) -> None:
    """Both are NotFound, and each says which it is."""
    with pytest.raises(NotFound, match="missing does not exist"):
        op.stat("missing")
    nowhere = open_at(bucket="no-such-bucket")
    with pytest.raises(NotFound, match="the bucket s3://no-such-bucket does not exist"):
        nowhere.stat("missing")
    for act in (nowhere.list, lambda: nowhere.read("x"), lambda: nowhere.write("x", b"1")):
        with pytest.raises(NotFound, match="NoSuchBucket"):
            list(act())  # type: ignore[call-overload]
    with pytest.raises(NotFound, match="NoSuchBucket"):
        nowhere.delete("x")


def test_wrong_credentials(open_at: Open) -> None:
    """PermissionDenied that tells a wrong secret from an unknown key."""
    with pytest.raises(PermissionDenied, match="secret key is wrong"):
        open_at(secret_access_key="wrong").write("x", b"1")
    with pytest.raises(PermissionDenied, match="access key is not known"):
        open_at(access_key_id="nobody").write("x", b"1")
    with pytest.raises(PermissionDenied):
        open_at(secret_access_key="wrong").stat("x")


def test_anonymous_is_refused_where_it_may_not(open_at: Open) -> None:
    """Nothing is signed, and the server says no."""
    with pytest.raises(PermissionDenied):
        open_at(anonymous=True, access_key_id=None, secret_access_key=None).write("x", b"1")


def test_an_endpoint_that_is_not_there(open_at: Open) -> None:
    """Unavailable that names the endpoint; it may come back, so it is retryable."""
    (port,) = free_ports(1)
    away = open_at(f"http://127.0.0.1:{port}", layers=())
    with pytest.raises(Unavailable, match=f"127.0.0.1:{port} cannot be reached") as raised:
        away.stat("x")
    assert raised.value.retryable
    assert raised.value.surely_not_acted
    assert raised.value.hint


@pytest.mark.parametrize(
    "reply",
    [
        Reply(301, {"x-amz-bucket-region": "eu-west-3"}),
        Reply(400, {"x-amz-bucket-region": "eu-west-3"}),
        Reply(
            400,
            {},
            b"<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is "
            b"wrong; expecting 'eu-west-3'</Message><Region>eu-west-3</Region></Error>",
        ),
    ],
)
def test_the_wrong_region(through: Operator, proxy: FaultProxy, reply: Reply) -> None:
    """ConfigInvalid that names the right one, whichever way S3 tells it."""
    proxy.add(Fault(times=None, reply=reply))
    with pytest.raises(ConfigInvalid, match="region eu-west-3") as raised:
        through.read("x")
    assert "region=eu-west-3" in str(raised.value)
    assert proxy.count() == 1


def test_a_reply_that_is_no_http(open_at: Open) -> None:
    """Unavailable, not a parser's stack trace."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with suppress(OSError):  # the listener is closed at the end
                while True:
                    peer, _ = listening.accept()
                    peer.recv(65536)
                    peer.sendall(b"SSH-2.0-nonsense\r\n\r\n")
                    peer.close()

        threading.Thread(target=answer, daemon=True).start()
        odd = open_at(f"http://127.0.0.1:{listening.getsockname()[1]}", layers=())
        with pytest.raises(Unavailable, match=r"not HTTP/1\.1"):
            odd.stat("x")


def test_no_secret_anywhere(server: S3Server, open_at: Open) -> None:
    """Not in the repr, the pickle, a message, a cause, a checkpoint or a location."""
    op = open_at(session_token="t0k3n-secret")
    secrets = (server.secret_key, "t0k3n-secret")
    shown = [repr(op), repr(op.service), op.location("x"), repr(vars(op.service))]
    shown.append(repr(op.service._config))  # type: ignore[attr-defined]
    with pytest.raises(CalqueError) as raised:
        op.write("x", b"1")
    error: BaseException | None = raised.value
    while error is not None:
        shown.append(f"{error} {error!r} {vars(error)}")
        error = error.__cause__
    pickled = pickle.dumps(op)
    for secret in secrets:
        assert not any(secret in each for each in shown)
        assert secret.encode() not in pickled


def test_an_operator_pickles_and_finds_its_keys_again(
    server: S3Server, op: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What travels to another process is the address; keys come from where it is opened."""
    op.write("x", b"1")
    travelled = pickle.loads(pickle.dumps(op))
    with pytest.raises(PermissionDenied, match="no credentials"):
        travelled.read("x")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    with pickle.loads(pickle.dumps(op)) as again:
        assert again.read("x") == b"1"


@pytest.mark.parametrize(
    "options",
    [
        {"user": {"a b": "1"}},
        {"user": {"": "1"}},
        {"user": {"a": "1\r\nx-amz-acl: public-read"}},
        {"content_type": "a/b\r\nx-amz-acl: public-read"},
        {"tags": {str(number): "x" for number in range(11)}},
    ],
)
def test_metadata_that_cannot_be(op: Operator, options: dict[str, object]) -> None:
    """InvalidInput before anything is sent; a line break smuggles no header in."""
    with pytest.raises(InvalidInput):
        op.write("x", b"1", **options)  # type: ignore[arg-type]
    assert not op.exists("x")


def test_a_bare_400_says_what_it_may_be() -> None:
    """The answer to a HEAD has no words. Who asked by a session is told that it may have ended,
    by the error that keeps a checkpoint; others what else answers so."""
    bare = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
    with answering(lambda head: bare) as endpoint:
        with pytest.raises(PermissionDenied, match="session may have expired"):
            nowhere("s3").open(endpoint, session_token="of a session").stat("x")
        with pytest.raises(InvalidInput, match="expired, a wrong region or a proxy"):
            nowhere("s3").open(endpoint).stat("x")
    told = b"<Error><Code>InvalidArgument</Code><Message>no</Message></Error>"
    refused = refusal_of(400, {}, told)
    assert type(error_of(refused, "s3://b/k", by_session=True)) is InvalidInput
