"""A folder as a whole: how much it holds, and its copy or rename as one transaction."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request

from calque.console.page import Page
from calque.console.store_pages.commands import store_command
from calque.console.store_pages.objects import address_of, text_of
from calque.console.store_pages.places import Place, parse_place, place_of
from calque.errors import InvalidInput
from calque.store.project import Project
from calque.store.uplink.objects import ObjectInfo


class FolderPages:
    """Folders of a store through one project."""

    def __init__(self, project: Project, folder: str) -> None:
        self._project = project
        self._folder = folder

    def show_folder(self, request: Request) -> Page:
        """How many objects a copy or a rename would touch, before it is asked for."""
        place = _folder_place(request)
        self._project.stat_bucket(place.bucket)
        objects = size = 0
        for each in self._project.list_objects(place.bucket, place.key):
            assert isinstance(each, ObjectInfo)
            objects += 1
            size += each.size
        data = {
            "path": place.path,
            "crumbs": place.crumbs(),
            "objects": objects,
            "bytes": size,
        }
        words = ("copy-prefix", place.path, "NEW/", "--project", self._folder)
        return Page("folder.html", place.path, data, store_command(*words))

    def copy(self, request: Request, form: FormData) -> str:
        """Copy all of it at once, or nothing; no byte is read."""
        old, new = _folder_place(request), _target(form)
        self._project.copy_prefix(*old, *new, **_options(form))
        return address_of(new)

    def rename(self, request: Request, form: FormData) -> str:
        """Rename all of it at once, or nothing; no byte is read."""
        old, new = _folder_place(request), _target(form)
        self._project.move_prefix(*old, *new, **_options(form))
        return address_of(new)


def _folder_place(request: Request) -> Place:
    place = place_of(request)
    return _require_folder(place)


def _target(form: FormData) -> Place:
    return _require_folder(parse_place(text_of(form, "to")))


def _require_folder(place: Place) -> Place:
    if not place.bucket or (place.key and not place.key.endswith("/")):
        raise InvalidInput(f"{place.path!r} is no folder", hint="A folder is bucket/name/.")
    return place


def _options(form: FormData) -> dict[str, Any]:
    return {"overwrite": form.get("replace") == "yes"}
