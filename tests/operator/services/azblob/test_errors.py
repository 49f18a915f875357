"""The error table, and the errors a user meets first."""

import pytest
from azure.storage.blob import StorageErrorCode

from calque.errors import (
    CalqueError,
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    PermissionDenied,
    RateLimited,
    Unavailable,
    Unexpected,
)
from calque.operator import Operator
from calque.operator.http.exchange import Answer
from calque.operator.services.azblob.errors import CODES, STATUSES, error_of
from tests.operator.services.azblob.conftest import THRESHOLD, Account
from tests.servers.azurite import Azurite
from tests.servers.process import free_ports
from tests.servers.proxy import Fault, FaultProxy, Reply


@pytest.mark.parametrize("code", [code.value for code in StorageErrorCode])
def test_no_code_of_the_sdk_is_unmapped(code: str) -> None:
    """Each code that Microsoft's client knows has an error of ours."""
    assert issubclass(CODES[code], CalqueError)
    assert CODES[code] is not Unexpected


@pytest.mark.parametrize("status", sorted(STATUSES))
def test_a_status_without_a_code_is_mapped(status: int) -> None:
    """Proxies and load balancers send bare statuses."""
    error = error_of(Answer(status, {}, b""), "az://a.blob/c/o", "stat")
    assert type(error) is STATUSES[status]
    assert "az://a.blob/c/o" in error.message


def test_unknown_answers_and_leases() -> None:
    """An unknown 5xx may be retried, an unknown 4xx is unexpected, a lease is not waited for."""
    assert error_of(Answer(599, {}, b""), "az://a.blob/c/o", "stat").retryable
    assert type(error_of(Answer(418, {}, b""), "az://a.blob/c/o", "stat")) is Unexpected
    leased = error_of(Answer(412, {"x-ms-error-code": "LeaseIdMissing"}, b""), "az://a", "write")
    assert (type(leased), leased.retryable) == (Unavailable, False)
    busy = error_of(
        Answer(503, {"x-ms-error-code": "ServerBusy", "retry-after": "3"}, b""), "az://a", "copy"
    )
    assert (type(busy), busy.retry_after) == (RateLimited, 3.0)


def test_a_missing_container(azurite: Azurite, op: Operator) -> None:
    """Every verb says that the container is missing, and delete does not swallow it."""
    gone = Account(azurite, "calquetest", "nowhere").open()
    op.write("x", b"1")
    for verb in (
        lambda: list(gone.list()),
        lambda: gone.write("x", b"1"),
        lambda: gone.delete("x"),
        lambda: gone.read("x"),
        lambda: op.copy("x", "y", into=gone),
    ):
        with pytest.raises(NotFound, match=r"container az://calquetest\.blob/nowhere") as raised:
            verb()
        assert raised.value.hint


def test_an_unreachable_endpoint() -> None:
    """Unavailable, naming the endpoint and what to check."""
    (port,) = free_ports(1)
    operator = Operator.from_uri(
        "az://c", layers=(), account="a", anonymous=True, endpoint=f"http://127.0.0.1:{port}/a"
    )
    with pytest.raises(Unavailable, match=str(port)) as raised:
        operator.stat("x")
    assert "endpoint" in (raised.value.hint or "")


def test_wrong_credentials(azurite: Azurite, account: Account) -> None:
    """A key that is not the account's, a signature that is not valid, none at all."""
    wrong_key = azurite.keys["calqueother"]
    wrong = {
        "key": wrong_key,
        "sas": "sv=2024-11-04&sr=c&sp=r&se=2030-01-01T00:00:00Z&sig=c2VzYW1l",
        "anonymous": True,
    }
    for name, value in wrong.items():
        operator = Operator.from_uri(
            f"az://{account.container}",
            account=account.name,
            endpoint=azurite.endpoint(account.name),
            **{name: value},  # type: ignore[arg-type]
        )
        with pytest.raises((PermissionDenied, NotFound)) as raised:
            operator.read("x")
        assert "c2VzYW1l" not in str(raised.value)
        assert wrong_key not in str(raised.value)


def test_no_credentials_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """azure-identity finds nothing: PermissionDenied that names the ways there are."""
    for name in ("KEY", "SAS_TOKEN", "CONNECTION_STRING"):
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    for name in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET"):
        monkeypatch.delenv(f"AZURE_{name}", raising=False)
    operator = Operator.from_uri("az://c", account="acme", endpoint="http://127.0.0.1:9/acme")
    with pytest.raises(PermissionDenied, match="acme") as raised:
        operator.stat("x")
    assert "az login" in (raised.value.hint or "")


def test_names_and_metadata_that_azure_cannot_keep(op: Operator) -> None:
    """Refused before anything is sent: it would be renamed or lost."""
    with pytest.raises(InvalidInput, match="backslash"):
        op.write("a\\b", b"x")
    for value in ("Zoë", " blank", "blank ", "line\nbreak", "nul\0"):
        with pytest.raises(InvalidInput, match="owner"):
            op.write("x", b"x", user={"owner": value})
        with pytest.raises(InvalidInput, match="content-type"):
            op.write("x", b"x", content_type=value)
    assert list(op.list()) == []


@pytest.mark.parametrize(
    ("verb", "reply"),
    [
        ("list", Reply(200, {}, b"<html>portal")),
        (
            "list",
            Reply(200, {}, b"<x><Blobs><Blob/></Blobs></x>"),
        ),
        ("stat", Reply(200, {"Content-Length": "0"})),
        ("stat", Reply(200, {"ETag": "x", "Last-Modified": "yesterday"})),
        ("stat", Reply(200, {"ETag": "x", "x-ms-tag-count": "many"})),
    ],
)
def test_answers_that_cannot_be_read(
    shaky: Operator, proxy: FaultProxy, verb: str, reply: Reply
) -> None:
    """A captive portal or a broken server: an error of ours, not a crash or a guess."""
    proxy.add(Fault(times=None, reply=reply))
    with pytest.raises(Unexpected):
        list(shaky.list()) if verb == "list" else shaky.stat("x")


def test_an_xml_bomb_does_not_go_off(shaky: Operator, proxy: FaultProxy) -> None:
    """A document that expands a thousandfold and more is refused while it is read."""
    lines = [f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10)]
    bomb = f'<!DOCTYPE x [<!ENTITY e0 "boom">{"".join(lines)}]><x>&e9;</x>'
    proxy.add(Fault(times=None, reply=Reply(200, {}, bomb.encode())))
    with pytest.raises(Unexpected):
        list(shaky.list())


def test_the_error_says_which_condition_failed(op: Operator) -> None:
    """In words of what was asked, on both ways of a copy and of a write."""
    op.write("y", b"2")
    for data in (b"1", b"1" * (THRESHOLD + 1)):
        op.write("x", data)
        for write in (op.copy, lambda _, to, **how: op.write(to, data, **how)):  # noqa: B023
            with pytest.raises(ConditionNotMatch, match="exists already"):
                write("x", "y", if_not_exists=True)
            with pytest.raises(ConditionNotMatch, match="if_match"):
                write("x", "y", if_match="0x12345")
