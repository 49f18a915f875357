"""A blob removed."""

from __future__ import annotations

from calque.errors import NotFound
from calque.operator.options import DeleteOptions
from calque.operator.services.azblob.client import Client
from calque.operator.services.azblob.errors import ContainerMissing
from calque.operator.services.azblob.resource import quote_etag
from calque.operator.services.azblob.stat import refuse_version


def delete(client: Client, path: str, options: DeleteOptions) -> None:
    """Remove the blob; one that is not there is no error, a container that is not there is."""
    refuse_version(options.version)
    # A blob that has snapshots is refused otherwise.
    headers = {"x-ms-delete-snapshots": "include"}
    if options.if_match is not None:
        headers["If-Match"] = quote_etag(options.if_match)
    try:
        client.send("delete", path, "DELETE", headers=headers)
    except NotFound as error:
        if isinstance(error, ContainerMissing):
            raise
