"""What a cell of a notebook shows while something goes on: a line, which is gone in the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape


def is_notebook() -> bool:
    """Whether this runs in the kernel of a notebook, which shows what cells display."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


@contextmanager
def notebook_line() -> Iterator[Callable[[str], None]]:
    """One output of the cell, replaced by each text that is given, and emptied in the end."""
    from IPython.display import HTML, display  # is there: a notebook runs

    line = display(HTML(""), display_id=True)
    shown = ""

    def update(text: str) -> None:
        nonlocal shown
        if text != shown:
            shown = text
            line.update(HTML(f"<code>{escape(text)}</code>"))

    try:
        yield update
    finally:
        line.update(HTML(""))
