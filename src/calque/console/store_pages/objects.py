"""The browser of objects: buckets and folders, page by page; uploads, deletions that ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from calque.console.guard import BASE
from calque.console.page import Page
from calque.console.store_pages.commands import command_on, store_command
from calque.console.store_pages.places import Place, place_of
from calque.console.text import whole_number
from calque.errors import InvalidInput, NotFound
from calque.store.project import Project
from calque.store.service.metadata import OWN
from calque.store.uplink.objects import ObjectInfo, PrefixInfo

ENTRIES_A_PAGE = 100
SORTED_UP_TO = 1000
"""Entries of a folder that is sorted unasked; a larger one is shown in the order of the store."""
STORED, SORTED = "stored", "name"
DELETED_AT_ONCE = 1000
_BELIEVED = 5.0
"""Seconds that a folder is shown again before it is read anew: pages of one folder cost one."""


class _Entries(NamedTuple):
    """A page of entries, and what leads to the next."""

    entries: Sequence[ObjectInfo | PrefixInfo]
    more: str | None
    order: str = SORTED


class ObjectPages:
    """Folders of a store through one project."""

    def __init__(self, project: Project, folder: str) -> None:
        self._project = project
        self._folder = folder

    def show_objects(self, request: Request) -> Page:
        """Buckets, or what lies at a path; one that does not end in ``/`` is a search."""
        place = place_of(request)
        shared = {
            "path": place.path,
            "crumbs": place.crumbs(),
            "parent": place.parent.path,
            "deleted": whole_number(request.query_params.get("deleted", "")),
        }
        if not place.bucket:
            buckets = [asdict(each) for each in self._project.list_buckets()]
            command = store_command("buckets", "--project", self._folder)
            data = {**shared, "buckets": buckets, "entries": None, "more": None, "after": ""}
            data["order"] = SORTED
            return Page("objects.html", "Objects", data, command)
        self._project.stat_bucket(place.bucket)
        order, after = (request.query_params.get(name, "") for name in ("order", "after"))
        shown = self._entries_at(place, order, after)
        data = {
            **shared,
            "buckets": None,
            "entries": [_describe(each) for each in shown.entries],
            "order": shown.order,
            "more": shown.more,
            "after": after,
        }
        command = command_on(self._folder, "ls", place)
        return Page("objects.html", f"Objects in {place.path}", data, command)

    def _entries_at(self, place: Place, order: str, after: str) -> _Entries:
        """A page of what begins so, sorted by name where that costs little or was asked for."""
        is_folder = place.folder == place
        if is_folder and order == STORED:
            return self._stored(place, after)
        if is_folder and not order and not after:
            # To sort all of a folder must be read: of a large one the first page would take long.
            first = self._project.list_page(place.bucket, place.key, limit=SORTED_UP_TO)
            if first.cursor is not None:
                return self._stored(place, "")
            more = first.entries[ENTRIES_A_PAGE - 1 : ENTRIES_A_PAGE]
            is_more = len(first.entries) > ENTRIES_A_PAGE
            return _Entries(first.entries[:ENTRIES_A_PAGE], more[0].key if is_more else None)
        found = self._project.list_objects(
            place.bucket,
            place.key,
            start_after=after,
            recursive=False,
            max_age=_BELIEVED if after else 0.0,
        )
        entries = [*islice(found, ENTRIES_A_PAGE + 1)]
        is_more = len(entries) > ENTRIES_A_PAGE
        return _Entries(
            entries[:ENTRIES_A_PAGE], entries[ENTRIES_A_PAGE - 1].key if is_more else None
        )

    def _stored(self, place: Place, cursor: str) -> _Entries:
        page = self._project.list_page(place.bucket, place.key, cursor=cursor, limit=ENTRIES_A_PAGE)
        return _Entries(page.entries, page.cursor, STORED)

    def create_bucket(self, request: Request, form: FormData) -> str:
        """Make a bucket."""
        made = self._project.create_bucket(text_of(form, "name").strip())
        return address_of(Place(made.name))

    def upload(self, request: Request, form: FormData) -> str:
        """Store the files of a form in a folder; what is there is replaced only when asked for."""
        place = place_of(request).folder
        if not place.bucket:
            raise InvalidInput("an upload needs a bucket", hint="Open one first.")
        files = [
            each for each in form.getlist("file") if isinstance(each, UploadFile) and each.filename
        ]
        if not files:
            raise InvalidInput("no file was chosen", hint="Choose or drop one, then upload.")
        for each in files:
            kind = {OWN + "content_type": each.content_type} if each.content_type else {}
            self._project.upload(
                place.bucket,
                place.key + str(each.filename),
                each.file,
                metadata=kind,
                if_not_exists=form.get("replace") != "yes",
            )
        return address_of(place)

    def ask_delete(self, request: Request) -> Page:
        """How much would go; nothing is deleted."""
        place, whole = place_of(request), _is_whole(request)
        objects = size = 0
        for each in self._objects_at(place, whole):
            objects += 1
            size += each.size
        data = {
            "path": place.path,
            "parent": place.parent.path if whole else place.folder.path,
            "is_bucket": not place.key,
            "is_folder": whole,
            "objects": objects,
            "bytes": size,
        }
        command = command_on(self._folder, "rm -r" if whole else "rm", place)
        if not place.key:
            words = ("--with-objects", "--project", self._folder)
            command = store_command("rmbucket", place.bucket, *words)
        return Page("delete.html", f"Delete {place.path}", data, command)

    def delete(self, request: Request, form: FormData) -> str:
        """Delete an object, or all that lies below a folder or in a bucket, as it is now."""
        place, whole = place_of(request), _is_whole(request)
        if not place.key:
            deleted = self._project.delete_bucket(place.bucket, with_objects=True)
            return f"{address_of(Place(''))}&deleted={deleted}"
        deleted = 0
        keys = (each.key for each in self._objects_at(place, whole))
        while some := list(islice(keys, DELETED_AT_ONCE)):
            for each in self._project.delete_objects(place.bucket, some):
                if each.error is not None:
                    raise each.error
                deleted += each.deleted
        above = place.parent if whole else place.folder
        return f"{address_of(above)}&deleted={deleted}"

    def _objects_at(self, place: Place, whole: bool) -> Iterator[ObjectInfo]:
        if not place.bucket:
            raise InvalidInput("nothing is named that could be deleted")
        self._project.stat_bucket(place.bucket)
        if not whole:
            yield self._project.stat(place.bucket, place.key)
            return
        for each in self._project.list_objects(place.bucket, place.key):
            assert isinstance(each, ObjectInfo)
            yield each


def address_of(place: Place, page: str = "objects") -> str:
    """The page of a place."""
    return f"{BASE}/{page}?path={quote(place.path, safe='')}"


def text_of(form: FormData, name: str) -> str:
    """A field of a form that must be there, as it was sent: a name may end in a blank."""
    value = form.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"the form has no {name}")
    return value


def _is_whole(request: Request) -> bool:
    """Whether a folder is meant with all that is in it: its key alone does not say."""
    place = place_of(request)
    whole = request.query_params.get("whole") == "yes"
    if whole and place.key and not place.key.endswith("/"):
        raise NotFound(f"{place.path!r} is no folder", hint="A folder ends in '/'.")
    return whole or not place.key


def _describe(entry: ObjectInfo | PrefixInfo) -> dict[str, Any]:
    place = Place(entry.bucket, entry.key)
    told = {"key": entry.key, "path": place.path, "name": place.name}
    if isinstance(entry, PrefixInfo):
        return {**told, "is_folder": True, "size": None, "created": None, "etag": None}
    return {
        **told,
        "is_folder": False,
        "size": entry.size,
        "created": entry.created,
        "etag": entry.etag,
    }
