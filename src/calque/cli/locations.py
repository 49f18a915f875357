"""Locations on the command line: where a source lies, where a target goes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from calque.errors import ConfigInvalid, InvalidInput, IsADirectory

if TYPE_CHECKING:
    from calque.operator import Operator
    from calque.operator.layers import Layer
    from calque.operator.service import Bucket

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

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
SourceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--source-option", metavar="NAME=VALUE", help="An option of the source's service."
    ),
]
TargetOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--target-option", metavar="NAME=VALUE", help="An option of the target's service."
    ),
]
LocationArgument = Annotated[str, typer.Argument(metavar="LOCATION", help="A URI or a local path.")]


def _parse_options(options: Sequence[str], scheme: str) -> dict[str, str]:
    from calque.operator.registry import secrets_of

    named: dict[str, str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not name or not equals:
            raise ConfigInvalid(f"{option!r} is no option", hint="Write -o NAME=VALUE.")
        # Every user of the machine can read the arguments of a process.
        if name in secrets_of(scheme):
            raise ConfigInvalid(
                f"the secret {name!r} does not belong on a command line, where others can see it",
                hint="Give it by the environment.",
            )
        named[name] = value
    return named


def remote_of(location: str) -> str | None:
    """The name of the remote that a location is one of; None where it is of none."""
    from calque.config import load_settings

    name, colon, rest = location.partition(":")
    if not colon or rest.startswith("//") or not _REMOTE.fullmatch(name):
        return None
    return name if name in load_settings().remotes else None


def _resolve_remote(location: str) -> tuple[str, dict[str, str]]:
    """``NAME:rest`` with what ``[remotes.NAME]`` says of it; any other location as it is."""
    from calque.config import load_settings, remote_secrets
    from calque.operator.registry import secrets_of
    from calque.operator.uri import scheme_of

    name = remote_of(location)
    if name is None:
        return location, {}
    rest = location.partition(":")[2]
    remote = load_settings().remotes[name]
    secrets = secrets_of(scheme_of(remote.location))
    if misplaced := sorted(secrets & remote.options.keys()):
        raise ConfigInvalid(
            f"remotes.{name}.options.{misplaced[0]} is a secret, which is not read from a file",
            hint=f"Set CALQUE_REMOTES_{name}_{misplaced[0]}".upper() + ", or name a profile.",
        )
    joint = "" if remote.location.endswith("/") or not rest else "/"
    options = {**remote.options, **remote_secrets(name, secrets)}
    return f"{remote.location}{joint}{rest}", options


def is_account(location: str) -> bool:
    """Whether all buckets are meant: ``s3://``, ``az://ACCOUNT.blob/``."""
    scheme, sign, rest = location.partition("://")
    if not sign or scheme in ("fs", "file"):
        return False
    by_account = scheme in ("az", "azblob") and "." in rest and not rest.strip("/").count("/")
    return not rest.strip("/") or by_account


def buckets_of(location: str, options: Sequence[str] | None = None) -> Iterator[Bucket]:
    """The buckets of an account (see :func:`is_account`)."""
    from calque.operator.layers import default_layers
    from calque.operator.layers.chain import Chain
    from calque.operator.registry import list_buckets
    from calque.operator.uri import scheme_of

    given = _parse_options(options or (), scheme_of(location))
    return list_buckets(location, given, Chain(default_layers()))


def settle(location: str, options: Sequence[str] | None) -> tuple[str, dict[str, object]]:
    """A location as services know it, and the options its service gets.

    ``NAME:rest`` is one of a named remote. Options (``NAME=VALUE``) are those of remote services; a
    local side leaves them alone.
    """
    from calque.operator.uri import scheme_of

    if not location:
        raise InvalidInput("an empty location names nothing", hint="For example s3://b/key.")
    location, settled = _resolve_remote(location)
    scheme = scheme_of(location)
    # `-o` may be meant for the other side of a copy.
    given = {} if scheme in ("fs", "file") else _parse_options(options or (), scheme)
    return location, {**settled, **given}


def refuse_idle_options(
    sources: Sequence[str], target: str, of_source: Sequence[str], of_target: Sequence[str]
) -> None:
    """Raise where options were given to a side that is local: nobody would look at them.

    Nor would anybody refuse a secret among them, and a note of a copy keeps its command.
    """
    local = [_is_local(each) for each in (*sources, target) if each]
    idle = [
        *(each for each in of_source if all(local[:-1]) and each not in of_target),
        *(each for each in of_target if local[-1:] == [True] and each not in of_source),
        *(each for each in of_source if all(local)),
    ]
    if idle:
        raise ConfigInvalid(
            f"the option {idle[0].partition('=')[0]!r} is of a service, and was given to local "
            "files",
            hint="Leave it out: they need none.",
        )


def _is_local(location: str) -> bool:
    from calque.operator.uri import scheme_of

    return scheme_of(_resolve_remote(location)[0]) in ("fs", "file")


def settle_alike(
    locations: Sequence[str], options: Sequence[str]
) -> tuple[list[str], dict[str, object]]:
    """Locations as services know them, and the options that all of them get.

    Options of one must not be another's: the same name may lie on two servers.
    """
    settled = [settle(each, options) for each in locations]
    if len({str(sorted(given.items())) for _, given in settled}) > 1:
        raise InvalidInput("the sources are of services with different options: one at a time")
    return [uri for uri, _ in settled], settled[0][1]


@dataclass(frozen=True, slots=True)
class Location:
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
    ) -> Location:
        """Open a location, or ``NAME:rest`` of a named remote; see :func:`settle`."""
        from calque.operator import Operator

        text, given = settle(location, options)
        return cls(*Operator.locate(text, layers=layers, **given))

    @property
    def uri(self) -> str:
        """The canonical URI, free of secrets."""
        return self.operator.location(self.path)

    @property
    def identity(self) -> str:
        """The location, and the server where equal names may lie on several."""
        return self.operator.service.identity(self.path).name

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

    def file(self) -> Location:
        """This location, as one object; says what to do when it is a directory."""
        if not self.path or self.path.endswith("/") or self.is_local_directory:
            raise IsADirectory(
                f"{self.uri} is a directory; one object is needed",
                hint="Name one object; cp, mv and rm take a whole tree with -r.",
            )
        return self

    def target_for(self, source: Location) -> Location:
        """Where a copy of ``source`` goes: into a directory it keeps its name, as with cp."""
        if self.path and not self.path.endswith("/") and not self.is_local_directory:
            return self
        path = self.path.rstrip("/")
        return Location(self.operator, f"{path}/{source.name}" if path else source.name)

    @property
    def prefix(self) -> str:
        """What is listed here: a local directory's inside, else the path as a plain prefix."""
        if self.is_local_directory and self.path and not self.path.endswith("/"):
            return self.path + "/"
        return self.path
