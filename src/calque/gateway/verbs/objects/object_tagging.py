"""GetObjectTagging, PutObjectTagging and DeleteObjectTagging."""

from __future__ import annotations

from calque.gateway.content import check_tags, tags_of, with_tags
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer
from calque.gateway.xml import malformed


def get_object_tagging(call: Call) -> Response:
    """The tags of an object."""
    tags = tags_of(call.stat().metadata)
    named = [{"Key": name, "Value": value} for name, value in sorted(tags.items())]
    return answer("Tagging", {"TagSet": {"Tag": named}})


def put_object_tagging(call: Call) -> Response:
    """Replace the tags of an object; its bytes and its other metadata stay as they are."""
    document = call.document("Tagging")
    tag_set = document.find("TagSet")
    if tag_set is None:
        raise malformed("Tagging needs a TagSet.")
    tags = [(each.require("Key"), each.require("Value")) for each in tag_set.children("Tag")]
    _replace(call, check_tags(tags))
    return Response(200)


def delete_object_tagging(call: Call) -> Response:
    """Remove the tags of an object, and nothing else of it."""
    _replace(call, {})
    return Response(204)


def _replace(call: Call, tags: dict[str, str]) -> None:
    found = call.stat()
    stored = with_tags(found.metadata, tags)
    if stored != found.metadata:
        call.project.update_metadata(call.bucket, call.key, stored, if_match=found.etag)
