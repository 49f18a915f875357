"""From what was typed to trees: which folder of which service, and what becomes what.

``SRC/`` is what lies below SRC; a name without a slash at its end is the folder itself, which keeps
its name at the target, or one object. ``*``, ``?``, ``[`` and ``{`` after the last plain folder
choose among what lies below that one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from calque.errors import InvalidInput, NotFound
from calque.operator import Operator
from calque.operator.layers import Chain, Layer, Pace, add_layers
from calque.operator.registry import split
from calque.operator.service import HasService
from calque.operator.uri import scheme_of, text_of
from calque.transfer.plan.side import Side
from calque.transfer.request.filters import Filters, Rule
from calque.transfer.request.tree_request import Given

_GLOB = frozenset("*?[{")


@dataclass(frozen=True, slots=True)
class Origin:
    """A source: the tree, the name it keeps at the target, and what a glob leaves of it."""

    side: Side
    name: str = ""
    """A folder (``name/``) that its paths get at the target; empty for what lies below ``SRC/``."""
    single: str = ""
    """The name of the one object that may be meant instead of a folder."""
    chosen: Filters | None = None
    """What a pattern in its name leaves of it."""

    @property
    def shown(self) -> str:
        return self.side.location(self.single)


def open_source(
    given: Given, options: Mapping[str, object], layers: tuple[Layer, ...], *, globs: bool
) -> Origin:
    """The tree, or object, that a source names; nothing is sent."""
    if isinstance(given, HasService):
        return Origin(_side_of(given, layers))
    text = text_of(given)
    if globs and not isinstance(given, os.PathLike) and (found := _glob_at(text)) is not None:
        base, pattern = text[:found], text[found:].rstrip("/")
        rules = (
            Rule.include(f"/{pattern}"),
            Rule.include(f"/{pattern}/**"),
            Rule.exclude("**"),
        )
        return Origin(_open(base or "./", options, layers), chosen=Filters(rules=rules))
    folder, name = _split_name(text)
    if not name:
        return Origin(_open(text, options, layers))
    if scheme_of(text) in ("fs", "file") and os.path.isdir(_local(text)):
        return Origin(_open(f"{text}/", options, layers), name=f"{name}/")
    # Whether it is a folder or an object is seen by its listing, which is needed anyway.
    return Origin(_open(folder or "./", options, layers), single=name)


def refuse_link(given: Given) -> None:
    """Raise where a name without a slash is a link to a folder, which is to be deleted or moved.

    Elsewhere that is the link alone; here it would be what the folder holds, which may be in use
    under its own name.
    """
    if isinstance(given, HasService):
        return
    text = text_of(given)
    if text.endswith("/") or scheme_of(text) not in ("fs", "file"):
        return
    if os.path.islink(_local(text)) and os.path.isdir(_local(text)):
        raise InvalidInput(
            f"{text} is a link to a folder, {os.path.realpath(_local(text))}",
            hint=f"Nothing was done. Name the folder, or say {text}/ for what lies in it.",
        )


def as_folder(origin: Origin) -> Origin:
    """A source that may be a folder or an object, taken for a folder."""
    name = f"{origin.single}/"
    return Origin(below(origin.side, name), name=name)


def as_object(origin: Origin) -> Origin:
    """The same, taken for an object."""
    return replace(origin, side=replace(origin.side, only=(origin.single,)))


def open_target(given: Given, options: Mapping[str, object], layers: tuple[Layer, ...]) -> Side:
    """The folder that a target names, with or without a slash at its end."""
    if isinstance(given, HasService):
        return _side_of(given, layers)
    text = text_of(given)
    local = _local(text) if scheme_of(text) in ("fs", "file") else None
    if local is not None and os.path.lexists(local) and not os.path.isdir(local):
        raise InvalidInput(
            f"the target {text} is a file; a tree goes into a folder",
            hint="Name a folder, or copy one object without --recursive.",
        )
    return _open(text if text.endswith("/") else f"{text}/", options, layers)


def below(side: Side, folder: str) -> Side:
    """The tree of a folder (``name/``) of a tree, which need not exist."""
    if not folder:
        return side
    if side.is_local:
        path = side.service.location("").removeprefix("file://")
        opened = Operator.from_uri(Path(path) / folder, layers=side.service.chain.layers)
        return Side(opened.service)
    return replace(side, prefix=side.prefix + folder)


def _side_of(given: HasService, layers: tuple[Layer, ...]) -> Side:
    service = given.service
    wanted = _unpaced(layers) if service.scheme == "fs" else layers
    chain = Chain(add_layers(service.chain.layers, wanted))
    return Side(service.with_chain(chain), borrowed=True)


def _unpaced(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Rates are of servers."""
    return tuple(layer for layer in layers if not isinstance(layer, Pace))


def _open(text: str, options: Mapping[str, object], layers: tuple[Layer, ...]) -> Side:
    if scheme_of(text) in ("fs", "file"):
        # Rooted at the tree, so that no link and no key leads out of it.
        return Side(Operator.from_uri(Path(_local(text)), layers=_unpaced(layers)).service)
    operator, path = Operator.locate(text, layers=layers, **options)
    prefix = path if not path or path.endswith("/") else f"{path}/"
    return Side(operator.service, prefix)


def _local(text: str) -> str:
    return "/" + split(text)[1].rstrip("/")


def _split_name(text: str) -> tuple[str, str]:
    """A location cut before its last name; without a name where a folder is surely meant."""
    _, path = split(text)
    if not path or path.endswith("/"):
        return text, ""
    if scheme_of(text) in ("fs", "file"):
        folder, _, name = path.rpartition("/")
        return f"/{folder}/" if folder else "/", name
    name = path.rpartition("/")[2]
    return text[: len(text) - len(name)], name


def kept_name(given: Given) -> str:
    """The name that a source keeps at the target if it is a folder; empty where it keeps none."""
    return "" if isinstance(given, HasService) else _split_name(text_of(given))[1]


def _glob_at(text: str) -> int | None:
    """Where the first name with a sign of a pattern begins; None where there is none."""
    scheme = scheme_of(text)
    start = text.find("://") + 3 if "://" in text else 0
    if scheme in ("fs", "file") and os.path.lexists(_local(text)):
        return None  # a file of just that name
    at = next((place for place in range(start, len(text)) if text[place] in _GLOB), None)
    if at is None:
        return None
    slash = text.rfind("/", start, at)
    if slash < 0 and start:
        raise InvalidInput(f"{text!r} has a pattern in the place of its bucket's name")
    return slash + 1


def has_glob(text: str) -> bool:
    """Whether a source is a pattern: it has a sign of one, and is no file of just that name."""
    return _glob_at(text) is not None


def missing(origin: Origin) -> NotFound:
    """The error for a source that is not there."""
    return NotFound(
        f"{origin.shown} does not exist: there is no object and no folder of that name",
        hint="Nothing was written. Check the name; an object service knows no empty folders.",
    )
