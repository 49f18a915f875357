"""AbortMultipartUpload."""

from __future__ import annotations

from calque.errors import NotFound
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call
from calque.gateway.verbs.uploads.upload import no_such_upload, open_upload


def abort_multipart_upload(call: Call) -> Response:
    """Give an upload and its parts up."""
    try:
        open_upload(call).abort()
    except NotFound as error:
        raise no_such_upload() from error
    return Response(204)
