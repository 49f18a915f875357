"""Credentials come from google-auth and are renewed by it."""

import pickle
from pathlib import Path

import pytest

from calque.errors import PermissionDenied
from calque.operator import Operator
from tests.operator.services.gcs.service_account import key_file
from tests.servers.gcs_fake import GcsFake


def test_a_service_account_asks_for_its_token_once(tmp_path: Path) -> None:
    """The key file signs for a token, which serves many requests; a pickle finds it again."""
    with GcsFake(require_token=True) as fake:
        fake.make_bucket("b")
        path = key_file(tmp_path, f"{fake.endpoint}/token")
        operator = Operator.from_uri("gs://b", endpoint=fake.endpoint, key_file=str(path))
        operator.write("x", b"1")
        operator.copy("x", "y")
        assert len(fake.tokens) == 1
        opened_again = pickle.loads(pickle.dumps(operator))
        assert opened_again.read("y") == b"1"


def test_the_environment_names_the_key_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GOOGLE_APPLICATION_CREDENTIALS, as everywhere else."""
    with GcsFake(require_token=True) as fake:
        fake.make_bucket("b")
        path = key_file(tmp_path, f"{fake.endpoint}/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        operator = Operator.from_uri("gs://b", endpoint=fake.endpoint)
        assert operator.write("x", b"1").size == 1


@pytest.mark.parametrize("text", [None, "{}", "not json"])
def test_a_broken_key_file_says_what_to_do(tmp_path: Path, text: str | None) -> None:
    """Missing, empty or unreadable: PermissionDenied with the ways there are."""
    path = tmp_path / "key.json"
    if text is not None:
        path.write_text(text)
    operator = Operator.from_uri("gs://b", endpoint="http://127.0.0.1:1", key_file=str(path))
    with pytest.raises(PermissionDenied) as raised:
        operator.stat("x")
    assert "GOOGLE_APPLICATION_CREDENTIALS" in (raised.value.hint or "")


def test_no_credentials_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the environment, at home or on the machine."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    operator = Operator.from_uri("gs://b", endpoint="http://127.0.0.1:1")
    with pytest.raises(PermissionDenied, match="credentials") as raised:
        operator.stat("x")
    assert "gcloud auth" in (raised.value.hint or "")
