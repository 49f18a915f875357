"""Listings: any document, any key, any number of pages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote_plus
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import Unexpected
from calque.operator import Operator
from calque.operator.services.s3.list import read_page
from tests.operator.http.clouds import answering, nowhere
from tests.operator.services.s3.conftest import Open
from tests.servers.proxy import FaultProxy
from tests.servers.seaweedfs import S3Server

keys = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)


def document(entries: list[tuple[str, int]], *, encoded: bool, folders: list[str]) -> bytes:
    """A page as Amazon writes it."""

    def name(key: str) -> str:
        return quote_plus(key, safe="/") if encoded else escape(key)

    contents = "".join(
        f"<Contents><Key>{name(key)}</Key><LastModified>2026-11-15T10:00:00.000Z</LastModified>"
        f"<ETag>&quot;{size:032x}&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm>"
        f"<Size>{size}</Size><Owner><ID>me</ID></Owner><StorageClass>STANDARD</StorageClass>"
        "</Contents>"
        for key, size in entries
    )
    common = "".join(
        f"<CommonPrefixes><Prefix>{name(each)}</Prefix></CommonPrefixes>" for each in folders
    )
    kind = "<EncodingType>url</EncodingType>" if encoded else ""
    count = len(entries) + len(folders)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>'
        f"<Prefix></Prefix><KeyCount>{count}</KeyCount><MaxKeys>1000</MaxKeys>{kind}"
        f"<IsTruncated>false</IsTruncated>{contents}{common}</ListBucketResult>"
    ).encode()


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(keys, st.integers(0, 2**42), max_size=8),
    st.lists(keys, max_size=3),
)
def test_a_page_is_read_as_it_was_written(entries: dict[str, int], folders: list[str]) -> None:
    """Keys, sizes and ETags of any kind come back, encoded by URL."""
    page = read_page(document(list(entries.items()), encoded=True, folders=folders), str)
    assert [(each.path, each.size) for each in page.objects] == list(entries.items())
    assert [each.etag for each in page.objects] == [f"{size:032x}" for size in entries.values()]
    assert page.folders == folders
    assert page.token is None


def test_keys_that_are_not_encoded() -> None:
    """A server that ignores encoding-type: entities are resolved, a plus stays a plus."""
    odd = ["a&b", "a+b", "<tag>", "per%20cent"]
    page = read_page(document([(key, 1) for key in odd], encoded=False, folders=[]), str)
    assert [each.path for each in page.objects] == odd


def test_a_document_in_another_hand() -> None:
    """Prefixes, attributes and CDATA are read by a real parser when the quick one falls short."""
    body = (
        b'<s3:ListBucketResult xmlns:s3="http://s3.amazonaws.com/doc/2006-03-01/">'
        b"<s3:KeyCount>1</s3:KeyCount><KeyCount>1</KeyCount><s3:Contents><s3:Key><![CDATA[a&b]]>"
        b"</s3:Key><s3:Size>3</s3:Size></s3:Contents></s3:ListBucketResult>"
    )
    page = read_page(body, str)
    assert [(each.path, each.size) for each in page.objects] == [("a&b", 3)]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_elements_in_any_order(data: st.DataObject) -> None:
    """Folders, objects and the fields of the page are read wherever they stand, as Swift has it."""
    names = [f"k{number}" for number in range(data.draw(st.integers(0, 5)))]
    folders = [f"f{number}/" for number in range(data.draw(st.integers(0, 5)))]
    elements = [f"<Contents><Key>{name}</Key><Size>1</Size></Contents>" for name in names]
    elements += [f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in folders]
    elements += ["<IsTruncated>true</IsTruncated>"]
    elements += ["<NextContinuationToken>on</NextContinuationToken>", "<Prefix>p</Prefix>"]
    if data.draw(st.booleans()):
        elements.append(f"<KeyCount>{len(names) + len(folders)}</KeyCount>")
    gap = data.draw(st.sampled_from(["", "\n  "]))
    mixed = gap.join(data.draw(st.permutations(elements)))
    page = read_page(f"<ListBucketResult>{mixed}</ListBucketResult>".encode(), str)
    assert sorted(each.path for each in page.objects) == names
    assert sorted(page.folders) == folders
    assert page.token == "on"


def test_several_folders_in_one_element() -> None:
    """CommonPrefixes may hold more than one prefix, among objects or not."""
    common = b"<CommonPrefixes><Prefix>a/</Prefix><Prefix>c/</Prefix></CommonPrefixes>"
    entry = b"<Contents><Key>%s</Key><Size>1</Size></Contents>"
    for body in (entry % b"b" + common + entry % b"d", common, common + entry % b"b"):
        page = read_page(b"<ListBucketResult>%s</ListBucketResult>" % body, str)
        assert page.folders == ["a/", "c/"]


def test_a_count_that_disagrees() -> None:
    """More counted than listed, or less: an error, for something may be missing."""
    body = document([("a", 1), ("b", 2)], encoded=True, folders=["c/"])
    for count in (b"1", b"4", b"x"):
        with pytest.raises(Unexpected, match="counts"):
            read_page(body.replace(b"<KeyCount>3<", b"<KeyCount>%s<" % count), str)


def test_a_page_that_defines_entities() -> None:
    """A document that could expand into anything is refused."""
    body = b'<!DOCTYPE x [<!ENTITY a "aaaa">]><ListBucketResult><KeyCount>9</KeyCount>&a;'
    with pytest.raises(Unexpected):
        read_page(body + b"</ListBucketResult>", str)


def test_a_page_that_does_not_say_how_to_go_on() -> None:
    """Unexpected, not a listing that ends too early."""
    body = document([], encoded=True, folders=[]).replace(b">false<", b">true<")
    with pytest.raises(Unexpected):
        read_page(body, str)
    with pytest.raises(Unexpected):
        read_page(b"<html>hello</html>", str)


def test_pages_of_a_thousand(moto_server: S3Server, open_at: Open) -> None:
    """1,000 and 1,001 keys: nothing is lost at the border; in byte order."""
    op = _on_moto(moto_server, open_at)
    names = sorted(f"k/{number:04}" for number in range(1001))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: op.write(name, b""), names[:1000]))
    assert [each.path for each in op.list()] == names[:1000]
    op.write(names[1000], b"")
    assert [each.path for each in op.list()] == names
    assert [each.path for each in op.list(start_after=names[998])] == names[999:]


def test_one_level_over_many_pages(moto_server: S3Server, open_at: Open) -> None:
    """Directories and objects are merged in order, page after page."""
    op = _on_moto(moto_server, open_at, page_size=3)
    for name in ("a", "a-", "a/1", "a/2", "b/1", "c", "d/1/2", "e"):
        op.write(name, b"")
    assert [each.path for each in op.list(recursive=False)] == [
        *("a", "a-", "a/", "b/", "c", "d/", "e")
    ]
    assert [each.path for each in op.list(recursive=False, start_after="a/1")] == [
        *("b/", "c", "d/", "e")
    ]


def test_keys_in_byte_order(moto_server: S3Server, open_at: Open) -> None:
    """Backslashes, look-alikes and emoji, all exactly as they were written."""
    op = _on_moto(moto_server, open_at)
    names = ["a", "a-", "a.b", "a/b", "a//b", "a\\b", "a b", "a+b", "a%20b", "é", "🙂", "\uffff"]
    for name in names:
        op.write(name, name.encode())
    assert [each.path for each in op.list()] == sorted(names, key=str.encode)
    for name in names:
        assert op.read(name) == name.encode()
        op.copy(name, f"copy/{name}")
        assert op.read(f"copy/{name}") == name.encode()


def test_a_server_without_order_is_found_out(op: Operator, open_at: Open) -> None:
    """A merge over a listing that only seems ordered would lose keys: refused, with the remedy."""
    for name in ("a-", "a/b"):
        op.write(name, b"")
    with pytest.raises(Unexpected, match="key_order=false"):
        list(open_at(key_order=True).list())
    assert {each.path for each in op.list()} == {"a-", "a/b"}


def test_pages_are_fetched_when_needed(open_at: Open, proxy: FaultProxy, op: Operator) -> None:
    """Who looks at the first entry pays for the first page."""
    for number in range(7):
        op.write(f"k{number}", b"")
    paged = open_at(proxy.endpoint, page_size=2)
    entries = paged.list()
    assert next(entries).path == "k0"
    assert proxy.count() == 1
    assert len(list(entries)) == 6
    assert proxy.count() == 4


def _on_moto(server: S3Server, open_at: Open, **options: object) -> Operator:
    return open_at(
        server.endpoint,
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
        key_order=True,
        **options,
    )


@pytest.mark.parametrize("field", ["Key", "Size"])
def test_an_object_without_name_or_size(field: str) -> None:
    """It is no object of no bytes: the listing cannot be believed, however it is written."""
    fields = {"Key": "<Key>a</Key>", "Size": "<Size>1</Size>"}
    del fields[field]
    for opened in ("<Contents>", "<Contents x='1'>"):
        page = f"<ListBucketResult>{opened}{''.join(fields.values())}</Contents></ListBucketResult>"
        reply = f"HTTP/1.1 200 OK\r\nContent-Length: {len(page)}\r\n\r\n{page}".encode()
        with (
            answering(lambda head, reply=reply: reply) as endpoint,  # type: ignore[misc]
            pytest.raises(Unexpected, match=field),
        ):
            list(nowhere("s3").open(endpoint).list())
