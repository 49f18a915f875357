"""Unfinished uploads that killed copies left, found by our mark."""

from __future__ import annotations

from collections.abc import Iterator

from calque.errors import InvalidInput, NotFound, PermissionDenied
from calque.operator import paths
from calque.operator.service import Leftover
from calque.operator.services.s3.client import Client
from calque.operator.services.s3.uploads import UnfinishedUpload, Uploads

KIND = "multipart upload"


def leftovers(client: Client, prefix: str, key: str) -> Iterator[Leftover]:
    """Unfinished uploads under a prefix that bear our mark.

    One that may not be looked at does not keep the rest from being found: its error is raised at
    the end.
    """
    denied: PermissionDenied | None = None
    for unfinished in Uploads(client).list_unfinished(prefix, key):
        try:
            size = _size_if_ours(client, prefix, unfinished)
        except NotFound:
            continue  # committed or aborted since it was listed
        except PermissionDenied as error:
            denied = denied or error
            continue
        if size is not None:
            location = client.location(unfinished.key)
            yield Leftover(location, KIND, unfinished.upload, unfinished.started, size)
    if denied is not None:
        raise denied


def _size_if_ours(client: Client, prefix: str, unfinished: UnfinishedUpload) -> int | None:
    """The bytes of an upload that is ours; None where it is another's.

    One without any part bears no mark at all: only ``sweep_empty`` says that it is ours.
    """
    uploads = Uploads(client)
    marked = uploads.is_marked(prefix, unfinished)
    if not marked and not (marked is None and client.link.config.sweep_empty):
        return None
    return sum(part.size for part in uploads.parts(prefix, unfinished.key, unfinished.upload))


def remove_leftover(client: Client, leftover: Leftover) -> None:
    """Abort the upload; one that is gone is no error."""
    base = client.location("")
    if not leftover.location.startswith(base):
        raise InvalidInput(f"{leftover.location} is not in {base}")
    key = leftover.location[len(base) :]
    path = paths.relative(client.link.config.root, key)
    Uploads(client).abort(path, key, leftover.id)
