"""An extension of ours: everything below a prefix is copied or moved in one transaction.

S3 has no verb for it. ``POST /BUCKET?calque-move-prefix`` (or ``calque-copy-prefix``) with::

    <PrefixTransfer>
      <Prefix>old/</Prefix>
      <TargetBucket>photos</TargetBucket>      (this bucket, where it is left out)
      <TargetPrefix>new/</TargetPrefix>
      <Overwrite>true</Overwrite>              (false, where it is left out)
    </PrefixTransfer>
"""

from __future__ import annotations

from calque.errors import AlreadyExists, FailedPrecondition
from calque.gateway.errors import S3Error
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer
from calque.gateway.xml import Element, malformed

COPY, MOVE = "calque-copy-prefix", "calque-move-prefix"


def copy_prefix(call: Call) -> Response:
    """Copy all or nothing, visible at once; no byte is read."""
    return _transfer(call, is_move=False)


def move_prefix(call: Call) -> Response:
    """Move all or nothing, visible at once; no byte is read."""
    return _transfer(call, is_move=True)


def _transfer(call: Call, *, is_move: bool) -> Response:
    asked = call.document("PrefixTransfer")
    asked.allow_only(("Prefix", "TargetBucket", "TargetPrefix", "Overwrite"))
    transfer = call.project.move_prefix if is_move else call.project.copy_prefix
    try:
        done = transfer(
            call.bucket,
            _read_prefix(asked, "Prefix"),
            asked.get("TargetBucket") or call.bucket,
            _read_prefix(asked, "TargetPrefix"),
            overwrite=(asked.get("Overwrite") or "false").strip().lower() == "true",
        )
    except AlreadyExists as error:
        raise S3Error("PreconditionFailed", error.message) from error
    except FailedPrecondition as error:
        raise S3Error("ConditionalRequestConflict", error.message) from error
    return answer("PrefixTransferResult", {"Objects": done.objects})


def _read_prefix(element: Element, name: str) -> str:
    prefix = element.require(name)
    if prefix and not prefix.endswith("/"):
        raise malformed(f"{name} is empty or ends in a slash.")
    return prefix
