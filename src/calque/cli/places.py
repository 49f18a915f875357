"""Locations on the command line: where a source lies, where a target goes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from calque.errors import ConfigInvalid, InvalidInput, IsADirectory
from calque.operator import Operator
from calque.operator.layers import Layer
from calque.operator.registry import secrets_of
from calque.operator.uri import scheme_of

Source = Annotated[str, typer.Argument(metavar="SRC", help="A URI or a local path.")]
Target = Annotated[
    str,
    typer.Argument(
        metavar="DST", help="A URI or a local path; one that ends in / keeps the source's name."
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", metavar="NAME=VALUE", help="An option of the service: -o region=eu-west-1"
    ),
]
Location = Annotated[str, typer.Argument(metavar="LOCATION", help="A URI or a local path.")]


def _named(options: Sequence[str], scheme: str) -> dict[str, str]:
    named: dict[str, str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not name or not equals:
            raise ConfigInvalid(f"{option!r} is no option", hint="Write -o NAME=VALUE.")
        if name in secrets_of(scheme):
            raise ConfigInvalid(
                f"the secret {name!r} does not belong on a command line, where others can see it",
                hint="Give it by the environment.",
            )
        named[name] = value
    return named


@dataclass(frozen=True, slots=True)
class Place:
    """An operator and a path in it, opened from what was typed."""

    operator: Operator
    path: str

    @classmethod
    def of(
        cls,
        location: str,
        options: Sequence[str] | None = None,
        *,
        layers: tuple[Layer, ...] | None = None,
    ) -> Place:
        """Open a location. Options (``NAME=VALUE``) are those of remote services, on both sides."""
        if not location:
            raise InvalidInput("an empty location names nothing", hint="For example s3://b/key.")
        scheme = scheme_of(location)
        given = {} if scheme in ("fs", "file") else _named(options or (), scheme)
        return cls(*Operator.locate(location, layers=layers, **given))

    @property
    def location(self) -> str:
        return self.operator.location(self.path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def is_local(self) -> bool:
        return self.operator.scheme == "fs"

    @property
    def is_local_directory(self) -> bool:
        return self.is_local and os.path.isdir("/" + self.path)

    def file(self) -> Place:
        """This place, as one object; says what to do when it is a directory."""
        if not self.path or self.path.endswith("/") or self.is_local_directory:
            raise IsADirectory(
                f"{self.location} is a directory; one object is needed",
                hint="Trees are not copied by this command: name one object.",
            )
        return self

    def receiving(self, source: Place) -> Place:
        """Where a copy of ``source`` goes: into a directory it keeps its name, as with cp."""
        if self.path and not self.path.endswith("/") and not self.is_local_directory:
            return self
        path = self.path.rstrip("/")
        return Place(self.operator, f"{path}/{source.name}" if path else source.name)

    @property
    def prefix(self) -> str:
        """What is listed here: a local directory's inside, else the path as a plain prefix."""
        if self.is_local_directory and self.path and not self.path.endswith("/"):
            return self.path + "/"
        return self.path
