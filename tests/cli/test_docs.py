"""The pages of objects and trees tell every option; what they show is run by the tests of pages."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.conftest import Calque

PAGE = Path(__file__).parents[2] / "docs" / "cli-objects.md"
TREES = PAGE.with_name("trees.md")


def test_every_option_is_told(calque: Calque) -> None:
    """What ``calque cp --help`` lists stands in the page's table too."""
    told = PAGE.read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z][a-z-]+", calque("cp", "--help").stdout))
    assert options - {"--help", "--json"} <= set(re.findall(r"--[a-z][a-z-]+", told))


def test_every_option_of_trees_is_told(calque: Calque) -> None:
    """What ``calque sync --help`` lists stands on one of the two pages."""
    told = TREES.read_text(encoding="utf-8") + PAGE.read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z][a-z-]+", calque("sync", "--help").stdout))
    assert options - {"--help", "--json"} <= set(re.findall(r"--[a-z][a-z-]+", told))
