"""One object: what is known of it, its family of copies, its bytes, a link for others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from calque.console.page import Page
from calque.console.store_pages.commands import command_on
from calque.console.store_pages.objects import address_of, text_of
from calque.console.store_pages.places import Place, object_place, parse_place
from calque.console.text import moment, whole_number
from calque.errors import InvalidInput, Unsupported
from calque.gateway.keys import AccessKeys, Limits
from calque.operator.services.s3.signing import Keys, Signer
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.copies.read_family import read_family
from calque.store.metabase.model.records import ObjectRecord
from calque.store.project import Project
from calque.store.service.metadata import OWN, TAG
from calque.store.uplink.encryption.access import Prefix
from calque.store.uplink.encryption.paths import bucket_key, decrypt_path
from calque.store.uplink.verbs.download import Download

COPIES_SHOWN = 100
LONGEST_LINK_HOURS = 7 * 24
"""A signature of S3 lasts a week at most."""
INERT = ("image/png", "image/jpeg", "image/gif", "image/webp", "text/plain", "application/pdf")
"""Types that a browser may be told: no other is anything but bytes to it."""


@dataclass(frozen=True, slots=True)
class S3Door:
    """Where the same store answers S3: links lead there."""

    endpoint: str
    region: str = "us-east-1"

    def endpoint_for(self, name: str | None) -> str:
        """As one reaches it who came by this name: who listens to every address has none of its
        own, and ``0.0.0.0`` in a link leads its reader to his own machine."""
        own = urlsplit(self.endpoint)
        if not name or own.hostname not in ("0.0.0.0", "::"):
            return self.endpoint
        shown = f"[{name}]" if ":" in name else name
        return f"{own.scheme}://{shown}:{own.port}"


class ObjectPage:
    """The page of an object, and what can be done with it."""

    def __init__(self, store: EmbeddedStore, project: Project, door: S3Door | None) -> None:
        self._store, self._project, self._door = store, project, door

    def show_object(self, request: Request) -> Page:
        """Size, times, metadata, tags; original and copies, and what a deletion would free."""
        place = object_place(request)
        info = self._project.stat(place.bucket, place.key)
        stored = dict(info.metadata)
        data = {
            "path": place.path,
            "name": place.name,
            "crumbs": place.crumbs(),
            "size": info.size,
            "etag": info.etag,
            "created": info.created,
            "expires": info.expires,
            "segments": info.segments,
            "content_type": stored.get(OWN + "content_type"),
            "metadata": {name: value for name, value in stored.items() if _is_users(name)},
            "tags": {
                name.removeprefix(TAG): value
                for name, value in stored.items()
                if name.startswith(TAG)
            },
            "family": self._family(info.etag),
            "may_link": self._door is not None,
            "longest_link": LONGEST_LINK_HOURS,
        }
        command = command_on(str(self._store.folder), "stat", place)
        return Page("object.html", place.path, data, command)

    def download(self, request: Request) -> Response:
        """The bytes, always to be saved and never shown: they are others' and may be a page."""
        place = object_place(request)
        download = self._project.download(place.bucket, place.key)
        kind = download.info.metadata.get(OWN + "content_type", "").partition(";")[0].strip()
        name = quote(place.name.replace("/", "_") or "object", safe="")
        headers = {
            "Content-Length": str(download.size),
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
        }
        media = kind if kind in INERT else "application/octet-stream"
        return StreamingResponse(_blocks(download), headers=headers, media_type=media)

    def copy(self, request: Request, form: FormData) -> str:
        """Copy it to another name: one transaction, no bytes. What is there is left alone."""
        old, new = object_place(request), _target(form)
        self._project.copy_object(
            old.bucket, old.key, new.bucket, new.key, if_not_exists=form.get("replace") != "yes"
        )
        return address_of(new, "object")

    def rename(self, request: Request, form: FormData) -> str:
        """Give it another name: one transaction, no bytes. What is there is left alone."""
        old, new = object_place(request), _target(form)
        self._project.move_object(
            old.bucket, old.key, new.bucket, new.key, if_not_exists=form.get("replace") != "yes"
        )
        return address_of(new, "object")

    def link(self, request: Request, form: FormData) -> Page:
        """A link with an end. A key of its own stands behind it: revoked, the link is dead."""
        if self._door is None:
            raise Unsupported("links need S3", hint="Serve the store with S3: `calque serve`.")
        place, hours = object_place(request), whole_number(text_of(form, "hours").strip())
        if hours is None or not 1 <= hours <= LONGEST_LINK_HOURS:
            raise InvalidInput(f"a link lasts from 1 to {LONGEST_LINK_HOURS} hours")
        self._project.stat(place.bucket, place.key)
        until = datetime.now(UTC) + timedelta(hours=hours)
        limits = Limits(
            prefixes=(Prefix(place.bucket, place.folder.key),),
            write=False,
            list=False,
            delete=False,
            until=until,
        )
        keys = AccessKeys(self._store.endpoint.database)
        made = keys.make(self._project.access, limits, name=f"link to {place.path}"[:200])
        path = f"/{quote(place.bucket, safe='')}/{quote(place.key, safe='/-_.~')}"
        endpoint = self._door.endpoint_for(request.url.hostname)
        host = urlsplit(endpoint).netloc
        pairs = Signer(self._door.region).presign(
            Keys(made.access_key_id, made.secret_access_key),
            "GET",
            path,
            {"host": host},
            hours * 3600,
        )
        query = "&".join(f"{name}={value}" for name, value in pairs)
        data = {
            "path": place.path,
            "link": f"{endpoint}{path}?{query}",
            "until": until,
            "fingerprint": made.fingerprint,
        }
        return Page("link.html", f"A link to {place.name}", data)

    def _family(self, etag: str) -> dict[str, Any]:
        database = self._store.endpoint.database
        stream = bytes.fromhex(etag)
        family = read_family(database, stream, limit=COPIES_SHOWN)
        is_original = family.original.stream_id == stream
        return {
            "is_original": is_original,
            "original": self._relative(family.original, stream),
            "copies": [self._relative(each, stream) for each in family.copies],
            "copy_count": family.copy_count,
            "heir": self._relative(family.copies[0], stream)["path"] if family.copies else None,
            "freed_bytes": family.freed_bytes,
        }

    def _relative(self, record: ObjectRecord, stream: bytes) -> dict[str, Any]:
        return {
            "path": f"{record.bucket_name}/{self._plain(record)}",
            "created": moment(record.created_at),
            "size": record.total_plain_size,
            "is_this": record.stream_id == stream,
        }

    def _plain(self, record: ObjectRecord) -> str:
        """The satellite knows encrypted names alone; the access of the console opens them."""
        root = self._project.access.encryption.root
        assert root is not None, "the console is given the access of the whole store"
        return decrypt_path(bucket_key(root, record.bucket_name), record.object_key)


def _target(form: FormData) -> Place:
    place = parse_place(text_of(form, "to"))
    if not place.key or place.key.endswith("/"):
        raise InvalidInput(f"{place.path!r} names no object", hint="Give bucket/folder/name.")
    return place


def _is_users(name: str) -> bool:
    return not name.startswith(OWN)


def _blocks(download: Download) -> Iterator[bytes]:
    try:
        yield from (bytes(each) for each in download)
    finally:
        download.close()
