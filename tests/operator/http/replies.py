"""What each cloud answers when all is well, request by request, for servers that answer amiss."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import unquote

MIB = 1024 * 1024
PART = 5 * MIB
LARGE = 12 * MIB
"""The size of what has ``big`` in its name; all else is ``hello``."""
_MD5 = "XUFAKrxLKna5cZ2REBfFkg=="
_ETAG = '"5d41402abc4b2a76b9719d911017c592"'
_DAY = "Wed, 01 Jan 2025 00:00:00 GMT"
_MOMENT = "2025-01-01T00:00:00.000Z"


@dataclass
class Answer:
    """A reply before it is written out."""

    body: bytes = b""
    status: str = "200 OK"
    headers: dict[str, str] = field(default_factory=dict)

    def render(self, *, bodiless: bool) -> bytes:
        names = {name.lower() for name in self.headers}
        more = {} if "content-length" in names else {"Content-Length": str(len(self.body))}
        lines = [f"{name}: {value}" for name, value in (self.headers | more).items()]
        head = "\r\n".join([f"HTTP/1.1 {self.status}", "Connection: close", *lines, "", ""])
        return head.encode("utf-8", "surrogateescape") + (b"" if bodiless else self.body)


def answer_s3(head: str) -> Answer:
    method, target = head.split(" ", 2)[:2]
    size = LARGE if "big" in target else 5
    copied = "x-amz-copy-source:" in head
    if method == "HEAD":
        return Answer(
            headers={
                "ETag": _ETAG,
                "Content-Length": str(size),
                "Last-Modified": _DAY,
                "Content-Type": "text/plain",
                "x-amz-meta-a": "=?UTF-8?Q?b?=",
                "x-amz-tagging-count": "1",
                "x-amz-checksum-crc32": "NhCmhg==",
            }
        )
    if "tagging" in target:
        pairs = "<Tag><Key>a</Key><Value>b</Value></Tag>"
        return Answer(f"<Tagging><TagSet>{pairs}</TagSet></Tagging>".encode())
    if "uploadId" in target:
        return _answer_upload(method, copied)
    if method == "GET" and "/hostile?" in target:
        return _answer_s3_listing(target)
    if method == "POST":
        return Answer(_element("InitiateMultipartUploadResult", UploadId="u"))
    if method == "PUT":
        made = _element("CopyObjectResult", ETag=_ETAG, LastModified=_MOMENT)
        return Answer(made) if copied else Answer(headers={"ETag": _ETAG})
    if method == "DELETE":
        return Answer(status="204 No Content")
    about = {"ETag": _ETAG, "x-amz-checksum-crc32": "NhCmhg=="}
    return _bytes(about, ranged="range:" in head.lower())


def _answer_upload(method: str, copied: bool) -> Answer:
    if method == "GET":
        part = _element("Part", PartNumber="1", ETag=_ETAG, Size=str(PART)).decode()
        return Answer(_element("ListPartsResult", part, IsTruncated="false"))
    if method == "DELETE":
        return Answer(status="204 No Content")
    if method == "POST":
        return Answer(_element("CompleteMultipartUploadResult", ETag=_ETAG))
    if copied:
        return Answer(_element("CopyPartResult", ETag=_ETAG, ChecksumCRC32="NhCmhg=="))
    return Answer(headers={"ETag": _ETAG})


def _answer_s3_listing(target: str) -> Answer:
    entry = {"Key": "a%20b", "Size": "5", "ETag": "&quot;a&quot;", "LastModified": _MOMENT}
    if "versions" in target:
        version = _element("Version", **entry, VersionId="1").decode()
        return Answer(_element("ListVersionsResult", version, IsTruncated="false"))
    if "list-type" in target:
        listed = _element("Contents", **entry, StorageClass="STANDARD").decode()
        listed += _element("CommonPrefixes", Prefix="f/").decode()
        about = {"IsTruncated": "false", "KeyCount": "2", "EncodingType": "url"}
        return Answer(_element("ListBucketResult", listed, **about))
    upload = _element("Upload", Key="x", UploadId="u", Initiated=_MOMENT).decode()
    return Answer(_element("ListMultipartUploadsResult", upload, IsTruncated="false"))


def _element(name: str, inner: str = "", **leaves: str) -> bytes:
    told = "".join(f"<{leaf}>{text}</{leaf}>" for leaf, text in leaves.items())
    return f"<{name}>{told}{inner}</{name}>".encode()


def _bytes(about: dict[str, str], *, ranged: bool) -> Answer:
    if ranged:
        return Answer(b"ell", "206 Partial Content", about | {"Content-Range": "bytes 1-3/5"})
    return Answer(b"hello", headers=about)


def answer_gcs(head: str) -> Answer:
    method, target = head.split(" ", 2)[:2]
    size = LARGE if "big" in target or "upload_id" in target else 5
    resource = {
        "name": "x",
        "generation": "7",
        "size": str(size),
        "updated": _MOMENT,
        "contentType": "a/b",
        "metadata": {"a": "b"},
        "crc32c": "mnG7TA==" if size == 5 else None,
        "etag": "e",
        "storageClass": "STANDARD",
    }
    if "rewriteTo" in target:
        told = {"totalBytesRewritten": str(size), "objectSize": str(size), "done": True}
        return Answer(json.dumps({**told, "resource": resource}).encode())
    if "uploadType=resumable" in target:
        return Answer(headers={"Location": "http://h/s?upload_id=u"})
    if "upload_id" in target and "/*\r\n" in head:
        return Answer(status="308 Resume Incomplete", headers={"Range": "bytes=0-8388607"})
    if method == "DELETE":
        return Answer(status="204 No Content")
    if "alt=media" in target:
        hashes = f"crc32c=mnG7TA==,md5={_MD5}"
        about = {"x-goog-generation": "7", "x-goog-hash": hashes}
        return _bytes(about, ranged="range:" in head.lower())
    if target.partition("?")[0].endswith("/o") and method == "GET":
        return Answer(json.dumps({"items": [resource], "prefixes": ["f/"]}).encode())
    return Answer(json.dumps(resource).encode())


def answer_azblob() -> Callable[[str], Answer]:
    """A server that remembers which blocks were staged: they are compared before the commit."""
    staged: set[str] = set()

    def answer(head: str) -> Answer:
        method, target = head.split(" ", 2)[:2]
        if found := re.search("blockid=([^& ]+)", target):
            staged.add(unquote(found[1]))
        if "blocklist" in target and method == "GET":
            blocks = "".join(_block(each) for each in sorted(staged))
            listed = f"<CommittedBlocks/><UncommittedBlocks>{blocks}</UncommittedBlocks>"
            return Answer(_element("BlockList", listed))
        if "blocklist" in target:
            staged.clear()
        return _answer_blob(method, target, head)

    return answer


def _block(name: str) -> str:
    number = int(base64.b64decode(name)[-6:])
    size = min(PART, LARGE - PART * (number - 1))
    return _element("Block", Name=name, Size=str(size)).decode()


def _answer_blob(method: str, target: str, head: str) -> Answer:
    about = {"ETag": '"0x8"', "Content-MD5": _MD5, "x-ms-copy-status": "success"}
    if method == "HEAD":
        size = str(LARGE if "big" in target else 5)
        told = {"Content-Length": size, "Last-Modified": _DAY, "Content-Type": "a/b"}
        return Answer(headers={**about, **told, "x-ms-meta-a": "b", "x-ms-tag-count": "1"})
    if "comp=tags" in target:
        return Answer(b"<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>")
    if "comp=list" in target:
        told = {"Etag": "0x8", "Content-Length": "5", "Last-Modified": _DAY, "Content-MD5": _MD5}
        properties = _element("Properties", **told).decode()
        listed = _element("Blob", f"{properties}<Metadata><a>b</a></Metadata>", Name="x").decode()
        blobs = _element("Blobs", listed + "<BlobPrefix><Name>f/</Name></BlobPrefix>").decode()
        return Answer(_element("EnumerationResults", blobs, NextMarker=""))
    if method == "PUT":
        return Answer(status="201 Created", headers={**about, "x-ms-copy-id": "c"})
    if method == "DELETE":
        return Answer(status="202 Accepted")
    return _bytes({"ETag": '"0x8"'}, ranged="x-ms-range" in head.lower())
