"""Code that runs as in a cell of a notebook, and what the cell was shown."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

_STAND_IN = """
import sys, types
shown = []
class Line:
    def update(self, html): shown.append(html.data)
class HTML:
    def __init__(self, data): self.data = data
class Shell:
    kernel = object()  # what a shell has that serves a notebook
ipython = types.ModuleType("IPython")
ipython.get_ipython = Shell
ipython.display = types.ModuleType("IPython.display")
ipython.display.HTML = HTML
ipython.display.display = lambda html, display_id: Line()
sys.modules.update({"IPython": ipython, "IPython.display": ipython.display})
import calque
"""


def run_in_notebook(code: str, *arguments: str, env: Mapping[str, str] | None = None) -> list[str]:
    """Run code that knows calque and its arguments (``sys.argv``); each text of the cell's line."""
    done = subprocess.run(
        [sys.executable, "-c", f"{_STAND_IN}\n{code}\nprint(shown)", *arguments],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    shown: list[str] = eval(done.stdout.strip().splitlines()[-1])
    return shown
