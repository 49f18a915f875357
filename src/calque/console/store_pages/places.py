"""Where one is in the browser of objects: ``bucket/key`` as it is typed, and the way up."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request

from calque.errors import InvalidInput


class Place(NamedTuple):
    """A bucket, and a key or the beginning of one."""

    bucket: str
    key: str = ""

    @property
    def path(self) -> str:
        return f"{self.bucket}/{self.key}" if self.bucket else ""

    @property
    def folder(self) -> Place:
        """The folder that it is in, or is."""
        return Place(self.bucket, self.key[: self.key.rfind("/") + 1])

    @property
    def parent(self) -> Place:
        """The folder above a folder; of a bucket, all buckets."""
        if not self.key:
            return Place("")
        above = self.key.rstrip("/")
        return Place(self.bucket, above[: above.rfind("/") + 1])

    @property
    def name(self) -> str:
        """Its last component."""
        return self.key.rstrip("/").rpartition("/")[2] or self.key

    def crumbs(self) -> list[tuple[str, str]]:
        """Names and paths from the bucket down to the folder."""
        crumbs = [(self.bucket, f"{self.bucket}/")] if self.bucket else []
        at = ""
        for name in self.folder.key.split("/")[:-1]:
            at += f"{name}/"
            crumbs.append((name or "(empty)", f"{self.bucket}/{at}"))
        return crumbs


def place_of(request: Request) -> Place:
    """The place that ``?path=`` names; nothing is all buckets."""
    return parse_place(request.query_params.get("path", ""))


def object_place(request: Request) -> Place:
    """The same, where an object must be named."""
    place = place_of(request)
    if not place.key:
        raise InvalidInput("no object is named", hint="Give ?path=bucket/key.")
    return place


def parse_place(path: str) -> Place:
    """``calque://bucket/key`` is understood, too, as it stands in commands."""
    bucket, _, key = path.removeprefix("calque://").partition("/")
    if key and not bucket:
        raise InvalidInput(f"{path!r} names no bucket", hint="A path is bucket/folder/name.")
    return Place(bucket, key)
