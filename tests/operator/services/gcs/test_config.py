"""The options of gs:// and what the environment adds."""

import pickle

import pytest

from calque.errors import ConfigInvalid, InvalidInput
from calque.operator import Operator
from calque.operator.services.gcs.config import PUBLIC_ENDPOINT, GcsConfig
from calque.operator.uri import ServiceUri


def test_googles_own_endpoint_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without options and environment, credentials are looked for and Google is asked."""
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    config = GcsConfig.parse(ServiceUri.parse("gs://b"), {})
    assert (config.endpoint, config.anonymous) == (PUBLIC_ENDPOINT, False)


@pytest.mark.parametrize("host", ["127.0.0.1:9023", "http://127.0.0.1:9023/"])
def test_the_emulator_variable(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """STORAGE_EMULATOR_HOST names the server, with or without a scheme, and needs no login."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", host)
    config = GcsConfig.parse(ServiceUri.parse("gs://b"), {})
    assert (config.endpoint, config.anonymous) == ("http://127.0.0.1:9023", True)
    own = GcsConfig.parse(ServiceUri.parse("gs://b"), {"endpoint": "https://private.example"})
    assert (own.endpoint, own.anonymous) == ("https://private.example", False)


def test_bad_options_are_refused() -> None:
    """Unknown names, no bucket, an endpoint that is none, a flag that is none."""
    with pytest.raises(InvalidInput, match="anonymus"):
        Operator.from_uri("gs://b?anonymus=true")
    with pytest.raises(ConfigInvalid):
        Operator.from_uri("gs://")
    with pytest.raises(ConfigInvalid):
        Operator.from_uri("gs://b", endpoint="localhost:1")
    with pytest.raises(ConfigInvalid):
        Operator.from_uri("gs://b?anonymous=perhaps")
    with pytest.raises(ConfigInvalid):
        Operator.from_uri("gs://b", token="")


def test_a_token_is_never_shown_or_pickled() -> None:
    """Not in a repr, not in a pickle, and not accepted in a URI."""
    operator = Operator.from_uri("gs://b", token="ya29.sesame")
    assert b"sesame" not in pickle.dumps(operator)
    assert "sesame" not in repr(operator)
    assert "sesame" not in repr(GcsConfig(bucket="b", token="ya29.sesame"))
    with pytest.raises(InvalidInput) as raised:
        Operator.from_uri("gs://b?token=ya29.sesame")
    assert "sesame" not in str(raised.value)


def test_location_is_bucket_and_key() -> None:
    """The canonical URI, whatever way the root is spelled."""
    plain = Operator.from_uri("gs://b/root", anonymous=True)
    slashed = Operator.from_uri("gcs://b/root/", anonymous=True)
    assert plain.location("k ey") == slashed.location("k ey") == "gs://b/root/k ey"
