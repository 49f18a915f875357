"""``calque init``: a ``calque.toml`` to begin with."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from calque.cli.output import JsonFlag, as_json, say
from calque.cli.settings_file import render_settings_file
from calque.errors import AlreadyExists, CalqueError, IsADirectory, NotFound, PermissionDenied

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def init(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Where to write it; `-` is standard output.")
    ] = "calque.toml",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json: JsonFlag = False,
) -> None:
    """Write a calque.toml with every setting, its default and what it means.

    As it is written it changes nothing; take away the # in front of what you want to set.

    calque init

    calque init ~/.config/calque/calque.toml
    """
    text = render_settings_file()
    if file == "-":
        sys.stdout.write(text)
        return
    path = Path(file).expanduser()
    try:
        _write(path, text, force)
    except OSError as error:
        if isinstance(error, CalqueError):
            raise
        raise _explain(path, error) from error
    if json:
        as_json({"file": str(path)})
    else:
        say(f"wrote {path}; `calque config` shows what is in force")


def _write(path: Path, text: str, force: bool) -> None:
    """A new file, or by force one that takes the old one's place in one step."""
    target = path.with_name(f".{path.name}.{os.getpid()}.new") if force and path.name else path
    # Secrets may be written into it later: nobody else reads it. O_EXCL: nothing is written over.
    opened = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(opened, "w", encoding="utf-8") as file:
            file.write(text)
        if target != path:
            os.replace(target, path)
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _explain(path: Path, error: OSError) -> CalqueError:
    if path.is_dir():
        return IsADirectory(f"{path} is a folder", hint=f"Name a file: {path / 'calque.toml'}.")
    if isinstance(error, FileExistsError):
        return AlreadyExists(
            f"{path} is there already and was not touched", hint="--force replaces it."
        )
    if isinstance(error, FileNotFoundError):
        return NotFound(f"there is no folder {path.parent}", hint=f"mkdir -p {path.parent}")
    return PermissionDenied(f"{path} cannot be written: {error.strerror}")
