"""The test plan in the docs names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_plan_names_files_that_exist() -> None:
    """Every file of the plan exists and holds tests."""
    named = re.findall(r"`(tests/\S+\.py)`", (ROOT / "docs" / "store-copies.md").read_text())
    assert len(named) > 10
    assert [name for name in named if "def test_" not in (ROOT / name).read_text()] == []
