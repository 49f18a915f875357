"""An object, or one version of it, removed."""

from __future__ import annotations

from calque.errors import NotFound
from calque.operator.options import DeleteOptions
from calque.operator.services.s3.client import Client, Request, refusal_behind
from calque.operator.services.s3.replies import quoted_etag


def delete(client: Client, path: str, key: str, options: DeleteOptions) -> None:
    """Remove an object; one that is not there is no error, a bucket that is not there is."""
    query = [("versionId", options.version)] if options.version else []
    headers = {"if-match": quoted_etag(options.if_match)} if options.if_match else {}
    request = Request("DELETE", key, query=query, headers=headers, accepts=(200, 204))
    try:
        # A conditional delete is not repeated: the first may have removed the object, and the
        # second would then tell of an object that is not there.
        client.send("delete", path, request, idempotent=not options.if_match)
    except NotFound as error:
        refusal = refusal_behind(error)
        if options.if_match or (refusal is not None and refusal.code == "NoSuchBucket"):
            raise
