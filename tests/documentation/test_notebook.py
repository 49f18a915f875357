"""The notebook of the documentation is run, and shows what it shows there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from docs.generate.notebook_page import FOLDER, render_notebook, run_notebook


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_gives_what_is_kept_of_it(path: Path, tmp_path: Path) -> None:
    """Every cell runs, and displays what the kept notebook has; progress was told meanwhile."""
    told: list[str] = []

    def listen(message: dict[str, Any]) -> None:
        if message["msg_type"] == "update_display_data":
            told.append(message["content"]["data"].get("text/html", ""))

    kept = nbformat.read(path, as_version=4)
    ran = run_notebook(path, tmp_path, listen)
    assert [shown(cell) for cell in ran.cells] == [shown(cell) for cell in kept.cells]
    assert any("of 3 files" in line for line in told), told


def shown(cell: Any) -> list[Any]:
    """What a cell displays, without how it was said."""
    outputs = cell.get("outputs", ())
    return [output.get("data") or output.get("text") for output in outputs]


def test_reports_are_tables_on_the_page() -> None:
    """Loads, previews and trees show themselves as HTML; the page has cells and outputs."""
    page = render_notebook(FOLDER / "first-load.ipynb")
    assert page.count("<table>") == 4
    assert "PARTIALLY_LOADED" in page
    assert "<td>equal</td><td>3</td>" in page
    assert "```python\nimport calque\n" in page
