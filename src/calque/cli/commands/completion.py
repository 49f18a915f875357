"""``calque completion``: the script by which a shell completes commands and flags."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


class Shell(StrEnum):
    """Shells that can complete calque."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell to complete in.", show_default=False)],
) -> None:
    """Print the script that completes commands and flags in a shell.

    `calque --install-completion` puts it where the shell you are in finds it.

    source <(calque completion bash)

    calque completion zsh >> ~/.zshrc

    calque completion fish > ~/.config/fish/completions/calque.fish
    """
    print(
        get_completion_script(
            prog_name="calque", complete_var="_CALQUE_COMPLETE", shell=shell.value
        )
    )
