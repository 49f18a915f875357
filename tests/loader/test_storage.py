"""A table's service in the words of its library, told by the service itself."""

from __future__ import annotations

import pytest

from calque.errors import Unsupported
from calque.loader.commit.tables.storage import delta_options, iceberg_properties
from calque.operator import Operator

KEYS = {"access_key_id": "AK", "secret_access_key": "SK"}


def test_amazon_by_the_bucket_in_the_host() -> None:
    """Both libraries get region, keys and the endpoint in the style each of them wants."""
    operator = Operator.from_uri("s3://lake", region="eu-central-1", session_token="ST", **KEYS)
    assert delta_options(operator, {}) == {
        "aws_endpoint": "https://lake.s3.eu-central-1.amazonaws.com",
        "aws_virtual_hosted_style_request": "true",
        "aws_allow_http": "false",
        "aws_region": "eu-central-1",
        "conditional_put": "etag",
        "aws_access_key_id": "AK",
        "aws_secret_access_key": "SK",
        "aws_session_token": "ST",
    }
    assert iceberg_properties(operator, {}) == {
        "s3.endpoint": "https://s3.eu-central-1.amazonaws.com",
        "s3.force-virtual-addressing": "true",
        "s3.region": "eu-central-1",
        "s3.access-key-id": "AK",
        "s3.secret-access-key": "SK",
        "s3.session-token": "ST",
    }


def test_another_server_by_path() -> None:
    """An endpoint of one's own is told as it is, plain HTTP is allowed where it was asked for."""
    operator = Operator.from_uri("s3://lake", endpoint_url="http://127.0.0.1:9", **KEYS)
    delta, iceberg = delta_options(operator, {}), iceberg_properties(operator, {})
    assert delta is not None
    assert delta["aws_endpoint"] == iceberg["s3.endpoint"] == "http://127.0.0.1:9"
    assert delta["aws_allow_http"] == "true"
    assert delta["aws_virtual_hosted_style_request"] == "false"
    assert iceberg["s3.force-virtual-addressing"] == "false"


def test_a_server_below_a_path() -> None:
    """A server that is not at the root of its host keeps its path, and loses only the bucket."""
    operator = Operator.from_uri("s3://lake", endpoint_url="https://h.test/s3/", **KEYS)
    assert iceberg_properties(operator, {})["s3.endpoint"] == "https://h.test/s3"


def test_anonymous() -> None:
    """Nobody's keys are told where none are wanted, whatever the environment has."""
    operator = Operator.from_uri("s3://lake", anonymous=True, region="us-east-1")
    delta, iceberg = delta_options(operator, {}), iceberg_properties(operator, {})
    assert delta is not None
    assert delta["aws_skip_signature"] == iceberg["s3.anonymous"] == "true"
    assert not [name for name in (*delta, *iceberg) if "access" in name]


def test_secrets_do_not_show() -> None:
    """What is handed over shows no key when it is printed."""
    service = Operator.from_uri("s3://lake", region="us-east-1", **KEYS).service
    assert "SK" not in repr(service.handover())  # type: ignore[attr-defined]


def test_a_folder_needs_nothing(tmp_path: object) -> None:
    """A local table is told nothing."""
    operator = Operator.from_uri(str(tmp_path))
    assert delta_options(operator, {}) is None
    assert iceberg_properties(operator, {}) == {}


def test_options_that_would_not_arrive_are_refused() -> None:
    """Where options cannot reach the library, that is said and not passed over."""
    operator = Operator.from_uri("gs://lake", anonymous=True)
    assert delta_options(operator, {}) is None
    with pytest.raises(Unsupported, match="gs://"):
        delta_options(operator, {"anonymous": True})
