"""A project: buckets and objects, as an application uses them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from calque.store.embedded import EmbeddedStore
from calque.store.uplink.grant import AccessGrant
from calque.store.uplink.session import Session
from calque.store.uplink.verbs import buckets, multipart, stat_object
from calque.store.uplink.verbs import copy_object as copies
from calque.store.uplink.verbs import delete_object as deletes
from calque.store.uplink.verbs import list_objects as listings
from calque.store.uplink.verbs import move_object as moves
from calque.store.uplink.verbs import move_prefix as prefixes
from calque.store.uplink.verbs.delete_objects import delete_objects
from calque.store.uplink.verbs.download import download_object
from calque.store.uplink.verbs.list_page import list_page
from calque.store.uplink.verbs.list_pending import list_pending, sort_pending
from calque.store.uplink.verbs.upload import upload_object

P = ParamSpec("P")
R = TypeVar("R")


def _verb(function: Callable[Concatenate[Session, P], R]) -> Callable[Concatenate[Project, P], R]:
    """A function of the uplink as a method, which hands it the project's session.

    Arguments and promises are written once, beside the code that keeps them.
    """

    @wraps(function)
    def method(self: Project, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(self.session, *args, **kwargs)

    return method


class Project:
    """One project through one access. Safe to share between threads; close it when done."""

    def __init__(self, session: Session, grant: AccessGrant, *, owns: EmbeddedStore | None = None):
        self._session = session
        self._grant = grant
        self._owns = owns

    @property
    def session(self) -> Session:
        """What the verbs below this class need."""
        return self._session

    @property
    def access(self) -> AccessGrant:
        """The grant this project was opened with: serialise it, or restrict it for others."""
        return self._grant

    create_bucket = _verb(buckets.create_bucket)
    stat_bucket = _verb(buckets.stat_bucket)
    delete_bucket = _verb(buckets.delete_bucket)
    list_buckets = _verb(buckets.list_buckets)

    upload = _verb(upload_object)
    download = _verb(download_object)
    stat = _verb(stat_object.stat_object)
    list_objects = _verb(listings.list_objects)
    list_page = _verb(list_page)
    update_metadata = _verb(stat_object.update_metadata)
    delete_object = _verb(deletes.delete_object)
    delete_objects = _verb(delete_objects)
    copy_object = _verb(copies.copy_object)
    prepare_copy = _verb(copies.prepare_copy)
    move_object = _verb(moves.move_object)
    copy_prefix = _verb(prefixes.copy_prefix)
    move_prefix = _verb(prefixes.move_prefix)

    begin_multipart = _verb(multipart.begin_multipart)
    resume_multipart = _verb(multipart.resume_multipart)
    list_pending = _verb(list_pending)
    sort_pending = _verb(sort_pending)
    list_parts = _verb(multipart.list_parts)

    def close(self) -> None:
        """Let go of the satellite and the nodes; of the embedded store too, if it was opened."""
        self._session.close()
        if self._owns is not None:
            self._owns.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Project({self._grant.address!r})"
