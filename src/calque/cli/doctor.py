"""``calque doctor``: what is installed, what is missing, what to do about it."""

from __future__ import annotations

import typer

from calque.cli.output import JsonFlag, as_json, record

app = typer.Typer(add_completion=False)


@app.command()
def doctor(json: JsonFlag = False) -> None:
    """Say what is installed, what is missing and what to do about it."""
    found = {"calque": "0.1.0"}
    if json:
        as_json(found)
    else:
        record(found)
