"""Documents that are sent: what is no document, and what is one to do harm."""

from __future__ import annotations

import pytest

from calque.gateway.errors import S3Error
from calque.gateway.xml import DEEPEST, MOST_ELEMENTS, read_document

LAUGHS = b'<!DOCTYPE a [<!ENTITY a0 "ha">%s]><Delete>&a9;</Delete>' % b"".join(
    b'<!ENTITY a%d "%s">' % (number, b"&a%d;" % (number - 1) * 10) for number in range(1, 10)
)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<Delete>",
        b"<Other/>",
        b"\x00" * 100,
        LAUGHS,
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><Delete/>',
        b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><Delete>&b;</Delete>',
        b"<Delete>&undeclared;</Delete>",
        b'<?xml version="1.0" encoding="nothing"?><Delete/>',
        b"<Delete>" + b"<a>" * (DEEPEST + 1) + b"</a>" * (DEEPEST + 1) + b"</Delete>",
        b"<Delete>" + b"<a/>" * MOST_ELEMENTS + b"</Delete>",
        b"<a>" * 1_000_000,
    ],
    ids=range(12),
)
def test_what_is_refused(data: bytes) -> None:
    """MalformedXML, whatever it would have become."""
    with pytest.raises(S3Error) as caught:
        read_document(data, "Delete")
    assert caught.value.code == "MalformedXML"


def test_the_largest_that_a_request_can_mean() -> None:
    """Ten thousand parts with every checksum are a document."""
    part = b"<Part><PartNumber>1</PartNumber><ETag>e</ETag>%s</Part>" % b"".join(
        b"<Checksum%d>x</Checksum%d>" % (number, number) for number in range(5)
    )
    data = b"<Complete>" + part * 10_000 + b"</Complete>"
    assert len(read_document(data, "Complete").children("Part")) == 10_000
