"""A notebook, run and written back, and as a page: cells, and what they displayed.

``python docs/generate/notebook_page.py`` runs all notebooks of ``docs/notebooks`` anew.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat

FOLDER = Path(__file__).parents[1] / "notebooks"


def run_notebook(
    path: Path, folder: Path, listen: Callable[[dict[str, Any]], None] | None = None
) -> nbformat.NotebookNode:
    """Run all cells in a folder, with a state of its own; an error of a cell is raised.

    ``listen`` is told every message that the kernel sends.
    """
    from nbclient import NotebookClient

    class Client(NotebookClient):  # type: ignore[misc]
        def process_message(self, msg: dict[str, Any], *rest: Any) -> Any:
            if listen is not None:
                listen(msg)
            return super().process_message(msg, *rest)

    notebook = nbformat.read(path, as_version=4)
    environment = os.environ | {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}
    client = Client(notebook, timeout=250, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    return tidy(notebook)


def tidy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Without what differs from run to run: ids, the folder."""
    notebook.metadata.pop("widgets", None)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                output.data.pop("text/plain", None)  # the same once more, with times in it
            for kind in list(output.get("data", {})):
                output.data[kind] = same_each_time(output.data[kind])
            if "text" in output:
                output.text = same_each_time(output.text)
    return notebook


def same_each_time(text: str) -> str:
    """Words of a run as they are each time."""
    text = re.sub(r"file:///[^\s<]*?/(landing|lake|mirror)", r"file:///…/\1", text)
    text = re.sub(r"\b\d{8}T\d{6}-[0-9a-f]{8}\b", "…", text)
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def render_notebook(path: Path) -> str:
    """The page, in Markdown."""
    notebook = nbformat.read(path, as_version=4)
    parts = [part for cell in notebook.cells for part in _cell(cell)]
    about = f"*This page is the notebook [`{path.name}`]({path.name}), as it was run.*"
    return "\n\n".join([parts[0], about, *parts[1:]]) + "\n"


def _cell(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    for output in cell.outputs:
        data = output.get("data", {})
        if data.get("text/html"):
            yield f'<div class="output" markdown="0">\n{data["text/html"]}\n</div>'
        elif "text/html" not in data:  # an empty one is a line of progress that has ended
            text = output.get("text") or data.get("text/plain", "")
            yield f"```text\n{text.rstrip()}\n```"


def main() -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(run_notebook(path, Path(folder)), path)


if __name__ == "__main__":
    main()
