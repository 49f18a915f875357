"""An object, or one version of it, removed; or a thousand at once."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from xml.sax.saxutils import escape

from calque.errors import CalqueError, NotFound, Unexpected
from calque.operator.options import DeleteOptions
from calque.operator.services.s3.client import Client, Request, refusal_behind
from calque.operator.services.s3.errors import Refusal, error_of
from calque.operator.services.s3.replies import blocks, leaves, quoted_etag
from calque.values import Metadata

MOST = 1000
"""Keys that one DeleteObjects takes."""


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


def delete_many(
    client: Client, entries: Sequence[Metadata], key_of: Callable[[str], str]
) -> dict[str, CalqueError]:
    """Remove up to a thousand objects, each only if it still has its etag; errors by path.

    A key that is refused fails alone. One that is not there is no error.
    """
    by_key = {key_of(entry.path): entry for entry in entries}
    listed = "".join(
        f"<Object><Key>{escape(key)}</Key>{_condition(entry)}</Object>"
        for key, entry in by_key.items()
    )
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    body = f'<Delete xmlns="{space}">{listed}<Quiet>true</Quiet></Delete>'.encode()
    digest = hashlib.md5(body, usedforsecurity=False).digest()
    request = Request(
        "POST",
        None,
        query=[("delete", "")],
        headers={"content-md5": base64.b64encode(digest).decode()},
        body=body,
        answers_by=b"<DeleteResult",
    )
    # A repeat does no harm: what is gone is gone, and what came in its place has another etag.
    answer = client.send("delete_many", "", request)
    if b"<DeleteResult" not in answer.body:
        raise Unexpected(f"{client.location(None)}: the reply to a delete of many is none")
    return _refused(client, by_key, [leaves(each) for each in blocks(answer.body, "Error")])


def _condition(entry: Metadata) -> str:
    return f"<ETag>{escape(quoted_etag(entry.etag))}</ETag>" if entry.etag else ""


def _refused(
    client: Client, by_key: Mapping[str, Metadata], told: Sequence[Mapping[str, str]]
) -> dict[str, CalqueError]:
    refused: dict[str, CalqueError] = {}
    for each in told:
        key, code = each.get("Key", ""), each.get("Code", "")
        if code == "NoSuchKey":
            continue
        if key not in by_key:
            raise Unexpected(f"{client.location(None)}: the server refused {key!r}, not asked for")
        refusal = Refusal(200, code, each.get("Message", ""), None)
        refused[by_key[key].path] = error_of(refusal, client.location(key))
    return refused
