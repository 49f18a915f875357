"""Code that runs as in a cell of a notebook, and what the cell was shown."""

from __future__ import annotations

from collections.abc import Mapping

from tests.program import run_program

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
    done = run_program(f"{_STAND_IN}\n{code}\nprint(shown)", *arguments, env=env, check=True)
    shown: list[str] = eval(done.stdout.strip().splitlines()[-1])
    return shown
