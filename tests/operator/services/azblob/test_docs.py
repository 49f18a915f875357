"""What docs/azure.md shows is true."""

import re
from pathlib import Path

import pytest

from calque.operator import Operator
from calque.operator.services.azblob.config import OPTIONS
from tests.servers.azurite import Azurite

PAGE = (Path(__file__).parents[4] / "docs" / "azure.md").read_text()


def test_the_example_runs(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the account that Azurite has, found by the environment."""
    azurite.make_container("calquetest", "landing")
    text = (
        f"AccountName=calquetest;AccountKey={azurite.keys['calquetest']};"
        f"BlobEndpoint={azurite.endpoint('calquetest')};"
    )
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert ', account="acme"' in code
    ours = code.replace(', account="acme"', "")
    exec(compile(ours, "docs/azure.md", "exec"), {"__name__": "docs"})
    found = [entry.path for entry in Operator.from_uri("az://landing/sales").list()]
    assert found == ["2026/a.csv", "archive/a.csv", "copy.csv"]


def test_every_option_is_described() -> None:
    """By its name."""
    assert all(f"`{name}" in PAGE for name in OPTIONS)
