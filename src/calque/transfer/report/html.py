"""Reports over trees in a notebook: a line, notes, a table of counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def render_html(
    title: str, notes: Iterable[str], head: Sequence[str], rows: Iterable[Sequence[object]]
) -> str:
    """Names are anybody's text: all of it is escaped."""
    lines = [f"<p><b>{escape(title)}</b></p>", *(f"<p>{escape(note)}</p>" for note in notes)]
    heads = f"<thead><tr>{_cells('th', head)}</tr></thead>"
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return "\n".join([*lines, f"<table>{heads}<tbody>{body}</tbody></table>"])


def _cells(tag: str, values: Iterable[object]) -> str:
    return "".join(f"<{tag}>{escape(str(value))}</{tag}>" for value in values)
