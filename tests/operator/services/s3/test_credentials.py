"""Credentials and endpoints are found as the AWS tools find them."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from calque.errors import ConfigInvalid, InvalidInput, PermissionDenied, Unsupported
from calque.operator.services.s3.config import S3Config
from calque.operator.services.s3.credentials import Account
from calque.operator.uri import ServiceUri


def place(**options: object) -> tuple[str, str, str]:
    """Origin, prefix and region for a bucket."""
    given = {"bucket": "my-bucket", **options}
    found = Account(S3Config(**given)).endpoint()  # type: ignore[arg-type]
    return found.origin, found.prefix, found.region


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("https://my-bucket.s3.amazonaws.com", "", "us-east-1")),
        (
            {"region": "eu-central-1"},
            ("https://my-bucket.s3.eu-central-1.amazonaws.com", "", "eu-central-1"),
        ),
        (
            {"region": "eu-central-1", "dualstack": True},
            ("https://my-bucket.s3.dualstack.eu-central-1.amazonaws.com", "", "eu-central-1"),
        ),
        (
            {"region": "us-east-2", "fips": True},
            ("https://my-bucket.s3-fips.us-east-2.amazonaws.com", "", "us-east-2"),
        ),
        (
            {"region": "cn-north-1"},
            ("https://my-bucket.s3.cn-north-1.amazonaws.com.cn", "", "cn-north-1"),
        ),
        (
            {"region": "eu-west-1", "addressing": "path"},
            ("https://s3.eu-west-1.amazonaws.com", "/my-bucket", "eu-west-1"),
        ),
        (
            {"region": "eu-west-1", "bucket": "dotted.bucket"},
            ("https://s3.eu-west-1.amazonaws.com", "/dotted.bucket", "eu-west-1"),
        ),
        (
            {"endpoint_url": "http://127.0.0.1:9000"},
            ("http://127.0.0.1:9000", "/my-bucket", "us-east-1"),
        ),
        (
            {"endpoint_url": "http://minio.test:9000", "addressing": "virtual"},
            ("http://my-bucket.minio.test:9000", "", "us-east-1"),
        ),
    ],
)
def test_endpoints(options: dict[str, object], expected: tuple[str, str, str]) -> None:
    """Region, style, dual stack, FIPS, partition and own endpoints."""
    assert place(**options) == expected


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_the_endpoint_of_the_environment(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Both variables are obeyed; an option wins over them."""
    monkeypatch.setenv(name, "http://127.0.0.1:7777")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert place() == ("http://127.0.0.1:7777", "/my-bucket", "eu-north-1")
    monkeypatch.setenv("AWS_REGION", "eu-south-1")
    assert place()[2] == "eu-south-1"
    assert place(endpoint_url="http://127.0.0.1:8888")[0] == "http://127.0.0.1:8888"


@pytest.mark.parametrize(
    ("url", "region", "bucket", "addressing"),
    [
        ("http://127.0.0.1:9000", None, "abc", "auto"),
        ("http://127.0.0.1:9000", "eu-west-3", "with-dash", "path"),
        ("https://s3.lab", "home", "dotted.name", "auto"),
        ("https://s3.lab:8443", "us-east-1", "0numbers9", "path"),
        ("http://h:1/deep/er/", "us-west-2", "abc", "auto"),
        ("http://[::1]:9000", None, "abc", "auto"),
    ],
)
def test_what_is_plain_to_see_is_what_botocore_says(
    url: str, region: str | None, bucket: str, addressing: str
) -> None:
    """A named endpoint is not asked for; the answer would be the same."""
    config = S3Config(bucket=bucket, endpoint_url=url, region=region, addressing=addressing)  # type: ignore[arg-type]
    account = Account(config)
    assert account._plain_endpoint() == account.resolve_endpoint()


@pytest.mark.parametrize(
    "options",
    [
        {"endpoint_url": "https://s3.eu-west-1.amazonaws.com"},
        {"endpoint_url": "http://h", "addressing": "virtual"},
        {"endpoint_url": "http://h", "bucket": "Upper_Case"},
        {"region": "eu-west-1"},
    ],
)
def test_what_is_not_plain_is_asked_for(options: dict[str, object]) -> None:
    """Amazon's own hosts, other styles and odd names are left to botocore's rules."""
    config = S3Config(**{"bucket": "my-bucket", **options})  # type: ignore[arg-type]
    assert Account(config)._plain_endpoint() is None


def test_configured_endpoints_may_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is obeyed."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:7777")
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert place()[0] == "https://my-bucket.s3.amazonaws.com"


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration file with profiles; the credentials file stands beside it."""
    config = tmp_path / "config"
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return config


def test_a_profile(profiles: Path) -> None:
    """Region, endpoint, style and keys come out of the files."""
    profiles.write_text(
        "[profile lab]\nregion = eu-west-3\nservices = here\ns3 =\n    addressing_style = virtual\n"
        "[services here]\ns3 =\n    endpoint_url = http://lab.test:9000\n"
    )
    (profiles.parent / "credentials").write_text(
        "[lab]\naws_access_key_id = AKLAB\naws_secret_access_key = labsecret\n"
    )
    assert place(profile="lab") == ("http://my-bucket.lab.test:9000", "", "eu-west-3")
    keys = Account(S3Config(bucket="my-bucket", profile="lab")).keys()
    assert keys is not None
    assert (keys.access_key, keys.secret_key) == ("AKLAB", "labsecret")


def test_a_profile_that_is_not_there(profiles: Path) -> None:
    """ConfigInvalid that names it, when the service is opened."""
    with pytest.raises(ConfigInvalid, match="nowhere"):
        Account(S3Config(bucket="my-bucket", profile="nowhere"))


def test_a_configuration_that_cannot_be_read(profiles: Path) -> None:
    """ConfigInvalid, not a stack trace of botocore."""
    profiles.write_text("[profile\nnonsense")
    with pytest.raises(ConfigInvalid):
        Account(S3Config(bucket="my-bucket")).endpoint()


def test_keys_and_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """All three variables; options win over them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "envsecret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "envtoken")
    keys = Account(S3Config(bucket="my-bucket")).keys()
    assert keys is not None
    assert (keys.access_key, keys.secret_key, keys.token) == ("AKENV", "envsecret", "envtoken")
    own = Account(S3Config(bucket="b", access_key_id="AKOWN", secret_access_key="x")).keys()
    assert own is not None
    assert (own.access_key, own.token) == ("AKOWN", None)


def test_credentials_are_refreshed(profiles: Path, tmp_path: Path) -> None:
    """Keys that run out are fetched anew by botocore, and each request gets the fresh ones."""
    script = tmp_path / "keys.py"
    script.write_text(
        "import json, datetime, pathlib\n"
        f"count = pathlib.Path({str(tmp_path / 'count')!r})\n"
        "n = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(n))\n"
        "soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=5)\n"
        "print(json.dumps(dict(Version=1, AccessKeyId=f'AK{n}', SecretAccessKey='s',"
        " SessionToken='t', Expiration=soon.isoformat())))\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    profiles.write_text(f"[profile p]\ncredential_process = {sys.executable} {script}\n")
    account = Account(S3Config(bucket="my-bucket", profile="p"))
    seen = [account.keys() for _ in range(3)]
    names = [keys.access_key for keys in seen if keys is not None]
    assert len(names) == 3
    assert names == sorted(set(names)), "keys within ten minutes of their end are renewed"


def test_no_credentials() -> None:
    """PermissionDenied that says what to set, at the first request that needs them."""
    account = Account(S3Config(bucket="my-bucket"))
    with pytest.raises(PermissionDenied, match="no credentials") as raised:
        account.keys()
    assert "AWS_ACCESS_KEY_ID" in str(raised.value)
    assert "anonymous" in str(raised.value)


def test_anonymous_needs_no_credentials() -> None:
    """And looks for none."""
    assert Account(S3Config(bucket="my-bucket", anonymous=True)).keys() is None


@pytest.mark.parametrize("bucket", ["Bad_Bucket!", "a b", "x" * 300])
def test_a_bucket_that_cannot_be(bucket: str) -> None:
    """ConfigInvalid before anything is sent."""
    with pytest.raises(ConfigInvalid):
        Account(S3Config(bucket=bucket)).endpoint()


def test_a_directory_bucket_is_refused_clearly() -> None:
    """They need sessions, which are not there yet."""
    with pytest.raises(Unsupported, match="directory bucket"):
        Account(S3Config(bucket="mine--use1-az4--x-s3", region="us-east-1")).endpoint()


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0},
        {"threshold": 6 * 1024**3},
        {"part_size": 1024},
        {"page_size": 1001},
        {"access_key_id": "only"},
        {"anonymous": True, "access_key_id": "a", "secret_access_key": "b"},
        {"addressing": "sideways"},
        {"checksum": "crc9"},
    ],
)
def test_options_that_cannot_hold(options: dict[str, object]) -> None:
    """ConfigInvalid when they are given."""
    with pytest.raises(ConfigInvalid):
        S3Config(bucket="my-bucket", **options)  # type: ignore[arg-type]


def test_a_bundle_that_cannot_be_read(tmp_path: Path) -> None:
    """ConfigInvalid that names the file."""
    account = Account(S3Config(bucket="my-bucket", ca_bundle=str(tmp_path / "none.pem")))
    with pytest.raises(ConfigInvalid, match=r"none\.pem"):
        account.tls()


def test_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTPS_PROXY is used, NO_PROXY is obeyed."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1,.internal")
    account = Account(S3Config(bucket="my-bucket"))
    assert account.proxy(account.endpoint()) == "http://proxy.test:3128"
    inside = Account(S3Config(bucket="my-bucket", endpoint_url="https://s3.internal"))
    assert inside.proxy(inside.endpoint()) is None


def test_options_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """CALQUE_S3_* says what options do, below them; secrets have their own variables."""
    monkeypatch.setenv("CALQUE_S3_KEY_ORDER", "false")
    monkeypatch.setenv("CALQUE_S3_PAGE_SIZE", "12")
    monkeypatch.setenv("CALQUE_S3_SECRET_ACCESS_KEY", "never")
    uri = ServiceUri.parse("s3://my-bucket/root")
    found = S3Config.parse(uri, {"page_size": "34"})
    assert (found.key_order, found.page_size, found.secret_access_key) == (False, 34, None)
    monkeypatch.setenv("CALQUE_S3_KEY_ORDER", "perhaps")
    with pytest.raises(ConfigInvalid, match="key_order"):
        S3Config.parse(uri, {})


def test_an_unknown_option() -> None:
    """InvalidInput that lists the known ones."""
    with pytest.raises(InvalidInput, match="reggion") as raised:
        S3Config.parse(ServiceUri.parse("s3://my-bucket"), {"reggion": "x"})
    assert "region" in str(raised.value.hint)
