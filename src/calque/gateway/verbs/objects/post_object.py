"""PostObject: the form of a browser."""

from __future__ import annotations

from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from calque.gateway.body.form import Form
from calque.gateway.content import ETAG, check_tags, map_of_headers, with_tags
from calque.gateway.errors import S3Error
from calque.gateway.request import Headers, Response
from calque.gateway.signature.post_policy import check_fields
from calque.gateway.target import require_key_length
from calque.gateway.verbs.call import Call, answer
from calque.gateway.verbs.objects.put_object import store_body
from calque.gateway.xml import malformed, read_document
from calque.store.uplink.objects import ObjectInfo

_DONE = ("200", "201", "204")


def form_key(form: Form) -> str:
    """The key that the form names; ``${filename}`` is that of its file."""
    key = form.fields.get("key")
    if not key:
        raise S3Error("InvalidArgument", "Bucket POST must contain a field named 'key'.")
    key = key.replace("${filename}", form.filename)
    require_key_length(key)
    return key


def post_object(call: Call, form: Form, policy: dict[str, object]) -> Response:
    """Store the file of a form whose policy was signed; nothing is stored that contradicts it."""
    fields = {**form.fields, "key": call.key}
    file = form.file()
    file.least, file.most = check_fields(policy, fields, call.bucket)
    stored = map_of_headers(Headers(_to_headers(fields)))
    if "tagging" in fields:
        stored = with_tags(stored, _read_tags(fields["tagging"]))
    info = store_body(call, file, stored)
    return _answer(call, info, fields)


def _to_headers(fields: dict[str, str]) -> list[tuple[str, str]]:
    """Fields that stand for headers, as they would have come; ``acl`` has a name of its own."""
    renamed = {"acl": "x-amz-acl"}
    return [
        (renamed.get(name, name), value.encode().decode("latin-1"))
        for name, value in fields.items()
        if name != "x-amz-tagging"
    ]


def _redirect(address: str, told: str) -> str:
    """Where the browser goes on, with what was stored in its query; empty for no address."""
    if not address.startswith(("http://", "https://")) or not address.isprintable():
        return ""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    query = f"{parts.query}&{told}" if parts.query else told
    return urlunsplit(parts._replace(query=query)).encode("ascii", "ignore").decode()


def _read_tags(text: str) -> dict[str, str]:
    tag_set = read_document(text.encode(), "Tagging").find("TagSet")
    if tag_set is None:
        raise malformed("Tagging needs a TagSet.")
    tags = [(each.require("Key"), each.require("Value")) for each in tag_set.children("Tag")]
    return check_tags(tags)


def _answer(call: Call, info: ObjectInfo, fields: dict[str, str]) -> Response:
    etag = f'"{info.metadata[ETAG]}"'
    location = f"/{call.bucket}/{quote(call.key)}"
    told = urlencode({"bucket": call.bucket, "key": call.key, "etag": etag})
    there = _redirect(fields.get("success_action_redirect") or fields.get("redirect") or "", told)
    if there:
        return Response(303, {"Location": there, "ETag": etag})
    status = fields.get("success_action_status", "204")
    status = status if status in _DONE else "204"
    if status != "201":
        return Response(int(status), {"Location": location, "ETag": etag})
    content = {"Location": location, "Bucket": call.bucket, "Key": call.key, "ETag": etag}
    response = answer("PostResponse", content)
    response.status = 201
    response.headers |= {"Location": location, "ETag": etag}
    return response
