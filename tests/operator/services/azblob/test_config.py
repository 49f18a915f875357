"""The options of az:// and what the environment adds."""

import pickle

import pytest

from calque.errors import ConfigInvalid, InvalidInput
from calque.operator import Operator
from calque.operator.services.azblob.builder import split
from calque.operator.services.azblob.config import AzblobConfig
from calque.operator.uri import ServiceUri

KEY = "c2VzYW1lLXNlc2FtZQ=="
PLAIN = ServiceUri.parse("az://c")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the environment."""
    for name in ("ACCOUNT", "KEY", "SAS_TOKEN", "CONNECTION_STRING"):
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)


def test_the_environment_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Account and key by the names that the az command knows; the key goes before the SAS."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "acme")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=x")
    config = AzblobConfig.parse(PLAIN, {})
    assert (config.endpoint, config.sas) == ("https://acme.blob.core.windows.net", "sv=1&sig=x")
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    config = AzblobConfig.parse(PLAIN, {})
    assert (config.key, config.sas) == (KEY, None)


def test_a_connection_string(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, with an endpoint of its own, or with a signature; options go before it."""
    text = f"DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={KEY};EndpointSuffix=x.cn"
    config = AzblobConfig.parse(PLAIN, {"connection_string": text})
    assert (config.account, config.key) == ("acme", KEY)
    assert config.endpoint == "https://acme.blob.x.cn"
    signed = "BlobEndpoint=https://acme.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=s"
    config = AzblobConfig.parse(PLAIN, {"connection_string": signed})
    assert (config.account, config.sas, config.key) == ("acme", "sv=1&sig=s", None)
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    assert AzblobConfig.parse(PLAIN, {}).account == "acme"
    assert AzblobConfig.parse(PLAIN, {"account": "other"}).account == "other"


def test_bad_options_are_refused() -> None:
    """Each with its own words and a next step."""
    with pytest.raises(ConfigInvalid, match="account") as raised:
        Operator.from_uri("az://c")
    assert "AZURE_STORAGE_ACCOUNT" in (raised.value.hint or "")
    with pytest.raises(InvalidInput, match="acount"):
        Operator.from_uri("az://c?acount=x")
    with pytest.raises(ConfigInvalid):
        Operator.from_uri("az://", account="a")
    with pytest.raises(ConfigInvalid, match="base64"):
        Operator.from_uri("az://c", account="a", key="not base64!")
    with pytest.raises(ConfigInvalid, match="connection string"):
        Operator.from_uri("az://c", connection_string="nonsense")
    for wrong in ("-1", "many", str(300 * 1024 * 1024)):
        with pytest.raises(ConfigInvalid, match="threshold"):
            Operator.from_uri(f"az://c?threshold={wrong}", account="a")
    with pytest.raises(ConfigInvalid, match="part_size"):
        Operator.from_uri("az://c?part_size=0", account="a")


def test_secrets_are_never_shown_or_pickled() -> None:
    """Not in a repr, not in a pickle, and not accepted in a URI."""
    operator = Operator.from_uri("az://c", account="acme", key=KEY)
    assert KEY.encode() not in pickle.dumps(operator)
    assert KEY not in repr(operator)
    assert KEY not in repr(
        AzblobConfig.parse(ServiceUri.parse("az://acme.blob/c"), {"key": KEY, "sas": "sig=abc"})
    )
    for name in ("key", "sas", "connection_string"):
        with pytest.raises(InvalidInput) as raised:
            Operator.from_uri(f"az://c?{name}=sesame", account="acme")
        assert "sesame" not in str(raised.value)


def test_locations_name_the_account_and_open_again() -> None:
    """One container's name in two accounts is two places; a location is a URI that works."""
    first = Operator.from_uri("az://c/root", account="acme", anonymous=True)
    second = Operator.from_uri("az://c/root", account="other", anonymous=True)
    assert first.location("k ey") == "az://acme.blob/c/root/k ey"
    assert first.location("k") != second.location("k")
    assert split("az://acme.blob/c/root/k ey") == ("az://acme.blob/c", "root/k ey")
    assert split("az://c/root/k") == ("az://c", "root/k")
    again, path = Operator.locate(first.location("k ey"), anonymous=True)
    assert again.location(path) == first.location("k ey")
    long = Operator.from_uri("az://acme.blob.core.windows.net/c/root", anonymous=True)
    assert long.location("k ey") == first.location("k ey")
