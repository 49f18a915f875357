"""The URI an operator is opened by."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from calque.errors import InvalidInput

_QUERY = re.compile(r"\?([a-z_]+=[^/&?]*(?:&[a-z_]+=[^/&?]*)*)$")
"""Options behind a plain path. A folder whose name looks so is written with a slash at its end."""
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True, slots=True)
class ServiceUri:
    """``scheme://host/path?option=value``; a plain path, with options or not, is one of ``fs``.

    ``path`` is kept as written, without its first ``/`` unless the scheme is ``fs``; only the
    values of the query are percent-decoded.
    """

    scheme: str
    host: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, uri: str) -> ServiceUri:
        """Read a URI; raises InvalidInput where it is none or carries credentials."""
        match = _SCHEME.match(uri)
        if not match:
            return cls._plain_path(uri)
        scheme, rest = match[1].lower(), uri[match.end() :]
        rest, _, query = rest.partition("?")
        host, slash, path = rest.partition("/")
        if "@" in host:
            raise InvalidInput(
                f"a {scheme} URI must not carry credentials before its host",
                hint="Give them by the environment or as options; a URI ends up in logs.",
            )
        if scheme in ("fs", "file"):
            path = slash + path
        return cls(scheme, host, path, _options(query))

    @classmethod
    def _plain_path(cls, path: str) -> ServiceUri:
        if not path:
            raise InvalidInput("an empty URI names nothing", hint="For example s3://bucket/prefix.")
        if found := _QUERY.search(path):
            return cls("fs", "", path[: found.start()], _options(found[1]))
        return cls("fs", "", path)

    def __str__(self) -> str:
        joint = "" if self.path.startswith("/") or not self.path else "/"
        return f"{self.scheme}://{self.host}{joint}{self.path}"


def text_of(uri: str | os.PathLike[str]) -> str:
    """A URI or a path as text; raises InvalidInput where it is neither."""
    text = os.fspath(uri) if isinstance(uri, os.PathLike) else uri
    if not isinstance(text, str):
        raise InvalidInput(f"a URI must be text, not {type(text).__name__}")
    return text


def root_of(uri: str | os.PathLike[str]) -> str:
    """The URI of an operator as text. What stands in a path object is all part of a name."""
    text = text_of(uri)
    return f"{text}/" if isinstance(uri, os.PathLike) and _QUERY.search(text) else text


def scheme_of(uri: str) -> str:
    """The scheme of a URI; ``fs`` for a plain path."""
    match = _SCHEME.match(uri)
    return match[1].lower() if match else "fs"


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in options:
            raise InvalidInput(f"the option {name!r} stands twice in the URI")
        options[name] = value
    return options


def refuse_unknown(scheme: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise InvalidInput for the first option that the service does not have."""
    names = sorted(known)
    for name in given:
        if name not in names:
            listed = ", ".join(names) if names else "none"
            raise InvalidInput(
                f"{scheme} has no option {name!r}", hint=f"Options of {scheme}: {listed}."
            )
