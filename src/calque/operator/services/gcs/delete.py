"""An object removed."""

from __future__ import annotations

from calque.errors import NotFound
from calque.operator.options import DeleteOptions
from calque.operator.services.gcs.client import Client
from calque.operator.services.gcs.errors import BucketMissing
from calque.operator.services.gcs.stat import find_generation


def delete(client: Client, path: str, options: DeleteOptions) -> None:
    """Remove the object; one that is not there is no error, a bucket that is not there is."""
    query = {
        "generation": options.version,
        "ifGenerationMatch": find_generation(client, path, options.if_match),
    }
    try:
        client.send("delete", path, "DELETE", query)
    except NotFound as error:
        if isinstance(error, BucketMissing):
            raise
