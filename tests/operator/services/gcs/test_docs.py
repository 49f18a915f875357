"""What docs/gcs.md shows is true."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from calque.operator.services.gcs.config import OPTIONS
from tests.servers.gcs_fake import GcsFake

PAGE = (Path(__file__).parents[4] / "docs" / "gcs.md").read_text()


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands, against the fake."""
    with GcsFake() as fake:
        fake.make_bucket("landing")
        fake.make_bucket("archive")
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", fake.endpoint)
        (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
        exec(compile(code, "docs/gcs.md", "exec"), {"__name__": "docs"})
        landed = sorted(fake.world.buckets["landing"].live)
        assert landed == ["sales/2026/a.csv", "sales/archive/a.csv"]
        assert set(fake.world.buckets["archive"].live) == {"sales/a.csv"}


def test_the_command_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """`calque ls` finds the emulator by its variable."""
    with GcsFake() as fake:
        fake.make_bucket("landing")
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", fake.endpoint.removeprefix("http://"))
        assert "calque ls gs://landing/" in PAGE
        done = subprocess.run(
            [sys.executable, "-m", "calque.cli", "ls", "gs://landing/"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_every_option_is_described() -> None:
    """By its name."""
    assert all(f"`{name}" in PAGE for name in OPTIONS)
