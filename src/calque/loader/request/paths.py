"""Stages as Python spells them: text, a path, or a list of files."""

from __future__ import annotations

import os
from collections.abc import Sequence

from calque.errors import InvalidInput, StatementInvalid
from calque.loader.request.glob import literal, split_glob

Location = str | os.PathLike[str]
Stages = Location | Sequence[Location]


def location_of(place: Location) -> str:
    """A location or a path as text."""
    if not isinstance(place, str | os.PathLike):
        raise InvalidInput(f"a location is text or a path, not {type(place).__name__}")
    return os.fsdecode(place)


def stage_and_files(stage: Stages, files: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    """A stage, and the names of its files where only some are meant.

    A list of files is the folder that they share and their names in it.
    """
    if isinstance(files, str):
        raise StatementInvalid(f"files is a list of names, not {files!r}", hint="Put it in a list.")
    if isinstance(stage, str | os.PathLike):
        return _glob_of(stage), tuple(files)
    if not isinstance(stage, Sequence):
        raise InvalidInput(f"a stage is a location or a list of files, not {type(stage).__name__}")
    if files:
        raise StatementInvalid("files are named twice: by the list of paths and by files=")
    places = [location_of(one) for one in stage]
    if not places:
        raise StatementInvalid("the list of files is empty", hint="Name at least one.")
    if len(places) == 1:
        return _glob_of(stage[0]), ()
    for one, place in zip(stage, places, strict=True):
        if place.endswith("/") or (("*" in place or "?" in place) and not _is_path(one)):
            raise StatementInvalid(
                f"a list names single files, and {place!r} may be many",
                hint="Load folders and globs one at a time, or the folder above by a pattern.",
            )
    return _split(places, by_paths=all(map(_is_path, stage)))


def _is_path(place: Location) -> bool:
    """A path that is there, and so no glob whatever characters it has."""
    return isinstance(place, os.PathLike) and os.path.exists(place)


def _glob_of(place: Location) -> str:
    return literal(location_of(place)) if _is_path(place) else location_of(place)


def _split(places: Sequence[str], *, by_paths: bool) -> tuple[str, tuple[str, ...]]:
    if not any("://" in place or place.startswith("@") for place in places):
        places = [os.path.abspath(place) for place in places]
    parts = [place.split("/") for place in places]
    shared = 0
    shortest = min(len(one) for one in parts) - 1
    while shared < shortest and len({one[shared] for one in parts}) == 1:
        shared += 1
    # Of a URL, scheme and bucket must be the same; of a path, both begin at the root.
    if shared < (3 if "://" in places[0] else 1):
        raise StatementInvalid(
            "the files of a list must be in one place (the same bucket, stage or file system)",
            hint=f"{places[0]!r} and another have no folder in common: load them one by one.",
        )
    folder = "/".join(parts[0][:shared]) + "/"
    if by_paths:
        folder = literal(folder)
    elif split_glob(folder)[1] is not None:
        raise StatementInvalid(
            f"the folder {folder!r} would be read as a glob", hint="Give pathlib.Path objects."
        )
    return folder, tuple("/".join(one[shared:]) for one in parts)
