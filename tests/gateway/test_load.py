"""`calque load` with the gateway as the stage and as the home of the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

import calque
from tests.gateway.world import World


def test_files_of_the_gateway_into_a_table_on_it(
    world: World, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file once, in a Delta table whose log is kept by conditions of the store."""
    for name, value in {**world.environment, "AWS_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name, value)
    client = world.client()
    for day in range(3):
        rows = "".join(f"{day},{number}\n" for number in range(100))
        client.put_object(Bucket=bucket, Key=f"in/{day}.csv", Body=f"day,number\n{rows}".encode())

    def load() -> int:
        report = calque.load(
            f"s3://{bucket}/in/",
            into=f"s3://{bucket}/lake/days",
            ledger=str(tmp_path / "ledger.db"),
        )
        return report.rows_loaded

    assert load() == 300
    assert load() == 0, "what was loaded is not loaded again"
    client.put_object(Bucket=bucket, Key="in/3.csv", Body=b"day,number\n3,1\n")
    assert load() == 1
    options = {"AWS_ENDPOINT_URL": world.url, "AWS_ALLOW_HTTP": "true"}
    table = DeltaTable(f"s3://{bucket}/lake/days", storage_options=options)
    assert table.to_pyarrow_table().num_rows == 301
