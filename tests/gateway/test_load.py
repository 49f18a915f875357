"""`calque load` with the gateway as the stage and as the home of the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

import calque
from tests.gateway.test_commands import client_of, serving


def test_files_of_the_gateway_into_a_table_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file once, in a Delta table whose log is kept by conditions of the store."""
    # A process of its own: some calls of deltalake let no other thread of Python run.
    with serving(tmp_path / "data") as told:
        environment = {
            "AWS_ACCESS_KEY_ID": told["s3"]["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": told["s3"]["secret_access_key"],
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": told["s3"]["endpoint"],
            "AWS_ALLOW_HTTP": "true",
            "CALQUE_LEDGER_URL": str(tmp_path / "ledger.db"),
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        client = client_of(told)
        client.create_bucket(Bucket="box")
        for day in range(3):
            rows = "".join(f"{day},{number}\n" for number in range(100))
            body = f"day,number\n{rows}".encode()
            client.put_object(Bucket="box", Key=f"in/{day}.csv", Body=body)
        assert load() == 300
        assert load() == 0, "what was loaded is not loaded again"
        client.put_object(Bucket="box", Key="in/3.csv", Body=b"day,number\n3,1\n")
        assert load() == 1
        table = DeltaTable("s3://box/lake/days")
        assert table.to_pyarrow_table().num_rows == 301


def load() -> int:
    return calque.load("s3://box/in/", into="s3://box/lake/days").rows_loaded
