"""The store that a command is about: as ``calque://`` finds it, else the folder ``./data``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from calque.store.project import Project

ProjectFlag = Annotated[
    str | None,
    typer.Option(
        "--project",
        envvar="CALQUE_PROJECT",
        show_envvar=True,
        help="The folder of the store, or grpc://host:port (then CALQUE_ACCESS is needed). "
        "Without it: where CALQUE_ACCESS leads, else ./data.",
    ),
]


def open_named_project(where: str | None) -> Project:
    """Open it; close it when done. Whoever was sent a grant needs nothing else."""
    from calque.store.open_project import address_of_grant, open_project

    return open_project(where or address_of_grant(None) or "./data", create=False)
