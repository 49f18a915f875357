"""What replies say."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.operator.drivers.verbs import Part
from calque.operator.services.s3.client import _is_error
from calque.operator.services.s3.replies import (
    bare_etag,
    checksum_of,
    leaves,
    metadata_of,
    moment,
    quoted_etag,
    text_of,
)
from calque.operator.services.s3.uploads import multipart_etag
from calque.values import Checksum


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r")))
def test_text_comes_back(text: str) -> None:
    """Whatever XML can escape, once and not twice."""
    assert text_of(escape(text).encode()) == text


def test_numbered_characters() -> None:
    """As XML numbers them, control characters too; what is no reference stays."""
    assert text_of(b"&#34;a&#x1;b&#x80;&amp;amp;") == '"a\x01b\x80&amp;'
    assert text_of(b"&nbsp;&#xffffffff;") == "&nbsp;&#xffffffff;"


def test_leaves() -> None:
    """The first of each name; empty and attributed elements too."""
    body = b'<A x="1"><B>1</B><C/><D></D><B>2</B><E y="z">3</E></A>'
    assert leaves(body) == {"B": "1", "C": "", "D": "", "E": "3"}


@pytest.mark.parametrize("etag", ['"abc"', "abc", ' "abc" '])
def test_etags(etag: str) -> None:
    """Bare inside, quoted on the wire."""
    assert bare_etag(etag) == "abc"
    assert quoted_etag("abc") == quoted_etag('"abc"') == '"abc"'
    assert bare_etag('""') is bare_etag(None) is None


def test_times() -> None:
    """Of documents and of headers; nonsense is unknown."""
    expected = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)
    assert moment("2026-11-15T10:00:00.000Z") == expected
    assert moment("Sun, 15 Nov 2026 10:00:00 GMT") == expected
    assert moment("soon") is moment("2026-99-99") is moment(None) is None


def test_only_checksums_of_the_whole_count() -> None:
    """A checksum of checksums says nothing of the bytes."""
    assert checksum_of({"x-amz-checksum-crc32": "AAAA"}) == Checksum("crc32", "AAAA")
    assert checksum_of({"x-amz-checksum-crc32": "AAAA-3"}) is None
    composite = {"x-amz-checksum-sha256": "AAAA", "x-amz-checksum-type": "COMPOSITE"}
    assert checksum_of(composite) is None
    full = {"x-amz-checksum-crc64nvme": "AA", "x-amz-checksum-type": "FULL_OBJECT"}
    assert checksum_of(full) == Checksum("crc64nvme", "AA")


def test_metadata_of_headers() -> None:
    """Encoded words are resolved; the version of an unversioned bucket is none."""
    found = metadata_of(
        "x",
        {
            "content-length": "3",
            "etag": '"e"',
            "x-amz-version-id": "null",
            "x-amz-meta-a": "=?UTF-8?B?R3LDvMOfZQ==?=",
            "x-amz-meta-b": "=?nonsense",
        },
    )
    assert (found.size, found.etag, found.version) == (3, "e", None)
    assert dict(found.user) == {"a": "Grüße", "b": "=?nonsense"}


def test_error_documents() -> None:
    """Known by their root, behind a declaration and white space; other documents are none."""
    error = b"<Error><Code>InternalError</Code></Error>"
    assert _is_error(error)
    assert _is_error(b'<?xml version="1.0"?>\n' + error)
    assert _is_error(b" \n" * 10_000 + error)
    assert not _is_error(b"<CopyObjectResult><ETag>x</ETag></CopyObjectResult>")
    listing = b"<ListBucketResult><Contents><Key>&lt;Error&gt;&lt;Code&gt;</Key></Contents>"
    assert not _is_error(listing)
    assert not _is_error(b"")


def test_the_etag_of_parts() -> None:
    """The MD5 of MD5s; none where a part is missing or is no MD5."""
    parts = [Part(2, "0" * 32, 5), Part(1, "f" * 32, 10)]
    assert multipart_etag(15, parts) == "48771e737e8b9032cc470a54224abfaf-2"
    assert multipart_etag(16, parts) is None
    assert multipart_etag(15, [Part(1, "kms", 15)]) is None
