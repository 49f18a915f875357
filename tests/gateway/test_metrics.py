"""Requests of S3 are counted by what they asked for and how they ended."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from prometheus_client import generate_latest

from tests.gateway.world import World


def test_requests_are_counted_by_verb_and_status(world: World, client: Any, bucket: str) -> None:
    """Verb and status are labels; names of buckets and objects are nowhere."""
    client.put_object(Bucket=bucket, Key="secret-name", Body=b"x")
    with pytest.raises(ClientError):
        client.get_object(Bucket=bucket, Key="missing-name")
    told = generate_latest(world.store.endpoint.metrics.registry).decode()
    lines = [line for line in told.splitlines() if line.startswith("s3_")]
    assert any('s3_requests_total{status="200",verb="PutObject"}' in line for line in lines)
    assert any('s3_requests_total{status="404",verb="GetObject"}' in line for line in lines)
    assert any('s3_seconds_count{verb="PutObject"}' in line for line in lines)
    assert bucket not in told
    assert "secret-name" not in told
    assert "missing-name" not in told
