"""Servers that are broken, slow without end, or speak no HTTP: our errors, in our time."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable, Iterator

import pytest

from calque.errors import CalqueError, ConfigInvalid, IntegrityError, Unexpected
from calque.operator import Operator
from calque.operator.http.html_replies import refuse_page
from calque.operator.layers import Retry, Timeout
from tests.operator.http.clouds import NAMES, Cloud, answering, nowhere

HEAD = {
    "s3": 'HTTP/1.1 200 OK\r\nETag: "7"\r\n',
    "gcs": "HTTP/1.1 200 OK\r\nx-goog-generation: 7\r\n",
    "azblob": 'HTTP/1.1 200 OK\r\nETag: "7"\r\n',
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "rest",
    [
        "Content-Length: ten\r\n\r\n0123456789",
        "Content-Length: -1\r\n\r\n0123456789",
        "Content-Length: +10\r\n\r\n0123456789",
        "Content-Length: 1_0\r\n\r\n0123456789",
        "Content-Length: 0x0a\r\n\r\n0123456789",
        "Content-Length: 10\r\nContent-Length: 9\r\n\r\n0123456789",
        f"Content-Length: {'9' * 30}\r\n\r\n0123456789",
        "Transfer-Encoding: chunked\r\n\r\n-5\r\n01234\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n+5\r\n01234\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0x5\r\n01234\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\n0123456789\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nfive\r\n01234\r\n0\r\n\r\n",
        "Transfer-Encoding: gzip, chunked\r\n\r\n5\r\n01234\r\n0\r\n\r\n",
        "Transfer-Encoding: gzip\r\n\r\n01234",
        "no colon here\r\n\r\n",
        "x: y\r\n" * 400 + "\r\n",
    ],
)
def test_replies_that_are_no_http(name: str, rest: str) -> None:
    """One error of ours, that names the object or the server; never a raw ValueError."""
    reply = (HEAD[name] + rest).encode()
    with answering(lambda head: reply) as endpoint:
        op = nowhere(name).open(endpoint)
        reads = [op.read, lambda path: b"".join(op.read_stream(path))]
        if "chunked" not in rest or "gzip" in rest:  # what is wrong shows in the head already
            reads.append(op.stat)
        for read in reads:
            with pytest.raises(Unexpected, match=r"hostile|127\.0\.0\.1"):
                read("x")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "first", [b"HTTP/1.1 abc\r\n\r\n", b"SSH-2.0-OpenSSH\r\n", b"\x16\x03\x01"]
)
def test_another_protocol(name: str, first: bytes) -> None:
    """What speaks something else is told so."""
    with answering(lambda head: first) as endpoint, pytest.raises(CalqueError):
        nowhere(name).open(endpoint).stat("x")


@pytest.mark.parametrize("name", NAMES)
def test_a_length_that_nobody_could_hold(name: str) -> None:
    """A reply that promises all the memory of the world is read as it comes, and is cut off."""
    reply = (HEAD[name] + "Content-Length: 9000000000000000000\r\n\r\nabc").encode()
    layers = (Retry(attempts=1), Timeout(step=5))
    with answering(lambda head: reply) as endpoint, pytest.raises(CalqueError):
        nowhere(name).open(endpoint, layers=layers).read("x", length=3, if_match="8")


def _forever(name: str, page: Callable[[int], bytes]) -> tuple[Callable[[str], bytes], list[str]]:
    asked: list[str] = []

    def answer(head: str) -> bytes:
        asked.append(head)
        body = page(len(asked))
        return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    return answer, asked


def _page(name: str, token: str) -> bytes:
    if name == "s3":
        return (
            "<ListBucketResult><IsTruncated>true</IsTruncated>"
            f"<NextContinuationToken>{token}</NextContinuationToken><Contents><Key>a</Key>"
            "<Size>1</Size></Contents></ListBucketResult>"
        ).encode()
    if name == "gcs":
        item = '{"name": "a", "generation": "1", "size": "1"}'
        return f'{{"nextPageToken": "{token}", "items": [{item}]}}'.encode()
    blob = "<Blob><Name>a</Name><Properties><Etag>1</Etag></Properties></Blob>"
    return (
        f"<EnumerationResults><Blobs>{blob}</Blobs><NextMarker>{token}</NextMarker>"
        "</EnumerationResults>"
    ).encode()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fresh", [False, True], ids=["same token", "new tokens"])
def test_the_same_page_for_ever(name: str, fresh: bool) -> None:
    """A listing that does not move is an error, whatever tokens it gives."""
    answer, asked = _forever(name, lambda number: _page(name, f"t{number if fresh else 0}"))
    with answering(answer) as endpoint, pytest.raises(Unexpected, match="list"):
        _drain(nowhere(name).open(endpoint).list(), asked)
    assert len(asked) <= 3


def _drain(entries: Iterator[object], asked: list[str]) -> None:
    """All of them; a listing that never ends is a failure, not a test that never ends."""
    for _ in entries:
        assert len(asked) < 10


@pytest.mark.parametrize("name", ["s3", "azblob"])
def test_the_same_leftovers_for_ever(name: str) -> None:
    """A sweep ends too."""
    pages = {
        "s3": b"<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>"
        b"<NextKeyMarker>k</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>"
        b"</ListMultipartUploadsResult>",
        "azblob": _page("azblob", "t"),
    }
    answer, asked = _forever(name, lambda number: pages[name])
    blocks = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n<BlockList/>"

    def answer_either(head: str) -> bytes:
        return blocks if "comp=blocklist" in head else answer(head)

    with answering(answer_either) as endpoint, pytest.raises(Unexpected, match="list"):
        _drain(nowhere(name).open(endpoint).leftovers(), asked)
    assert len(asked) <= 6


def test_sizes_that_are_no_numbers() -> None:
    """S3's documents tell sizes; nonsense among them is not ours."""
    pages = (
        b"<ListBucketResult><Contents><Key>a</Key><Size>big</Size></Contents></ListBucketResult>",
        b"<ListBucketResult><KeyCount>x</KeyCount></ListBucketResult>",
        b"<ListBucketResult><KeyCount>5</KeyCount><Contents></ListBucketResult>",
        b"<ListBucketResult><Contents><Size>5</Size></Contents></ListBucketResult>",
    )
    for page in pages:
        answer, _ = _forever("s3", lambda number, page=page: page)  # type: ignore[misc]
        with answering(answer) as endpoint, pytest.raises(Unexpected):
            list(nowhere("s3").open(endpoint).list())


@pytest.mark.parametrize(
    "page",
    [
        *(b'{"items": "abc"}', b'{"items": [5]}', b'{"prefixes": 5}', b'{"prefixes": [null]}'),
        *(b"[]", b"[" * 100_000),
    ],
    ids=lambda page: page[:20].decode(),
)
def test_pages_that_are_no_pages(page: bytes) -> None:
    """GCS answers JSON; any other JSON is an error of ours."""
    answer, _ = _forever("gcs", lambda number: page)
    with answering(answer) as endpoint, pytest.raises(Unexpected):
        list(nowhere("gcs").open(endpoint).list())


def test_more_than_1024_open_files(cloud: Cloud) -> None:
    """Connections whose numbers are higher than select can count work as any other."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1400
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"this process may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    held = []
    try:
        held = [socket.socket() for _ in range(1100)]
        assert held[-1].fileno() > 1024
        op = cloud.open()
        op.write("many", b"files")
        for _ in range(3):
            assert op.read("many") == b"files"
            assert op.stat("many").size == 5
    finally:
        for each in held:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "address",
    [
        "http://me:planted-secret@127.0.0.1:9",
        "https://planted-secret@127.0.0.1:9",
        "ftp://me:planted-secret@127.0.0.1",
        "me:planted-secret@127.0.0.1:9",
        "http//me:planted-secret@127.0.0.1:9",
        "http://me:planted-secret@[::1",
        "http://me:planted-secret@127.0.0.1:port",
    ],
)
def test_a_password_in_an_endpoint_is_never_told(name: str, address: str) -> None:
    """It is refused before anything is sent, and no message repeats it."""
    with pytest.raises(ConfigInvalid) as raised:
        nowhere(name).open(address).stat("x")
    assert "planted-secret" not in repr(raised.value) + str(raised.value)


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
@pytest.mark.parametrize("address", ["http://me:planted-secret@127.0.0.1:9", "me:planted-secret@h"])
def test_nor_one_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, variable: str, address: str
) -> None:
    """Whichever way botocore finds it."""
    monkeypatch.setenv(variable, address)
    op = Operator.from_uri(
        "s3://hostile", access_key_id="a", secret_access_key="b", region="us-east-1"
    )
    with pytest.raises(ConfigInvalid) as raised:
        op.stat("x")
    assert "planted-secret" not in repr(raised.value) + str(raised.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:port", "http://", "http://h:99999", "ftp://h"]
)
def test_an_address_that_is_none(name: str, address: str) -> None:
    """Told when the operator is opened, not by a raw ValueError of a request."""
    key = "endpoint_url" if name == "s3" else "endpoint"
    found = nowhere(name)
    with pytest.raises(ConfigInvalid, match="endpoint"):
        Operator.from_uri(found.place, **{**found.options, key: address})


@pytest.mark.parametrize("name", NAMES)
def test_a_page_for_people(name: str) -> None:
    """What a portal shows with 200 is no empty listing or list of leftovers, and no deed done."""
    page = b"<!DOCTYPE html>\n<html><body>Please log in.</body></html>"
    # It hangs up after each answer, and says so: a delete on a connection that is just being closed
    # would be another error.
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(page)
    reply = head + page
    with answering(lambda head: reply) as endpoint:
        op = nowhere(name).open(endpoint, layers=(Retry(attempts=1), Timeout()))
        for act in (lambda: list(op.list()), lambda: op.delete("x"), lambda: op.write("x", b"1")):
            with pytest.raises(Unexpected):
                act()
        if name != "gcs":  # which leaves nothing that could be listed
            with pytest.raises(Unexpected):
                list(op.leftovers())
    if name == "s3":
        with answering(lambda head: reply) as endpoint, pytest.raises(Unexpected):
            list(nowhere(name).open(endpoint, versions=True).list_versions())


@pytest.mark.parametrize("page", [b" <html>", b"<?xml version='1.0'?>\n<HTML lang='en'>"])
def test_pages_are_known(page: bytes) -> None:
    """However they begin; documents of services are none, whatever stands in them."""
    with pytest.raises(Unexpected, match="people"):
        refuse_page(page, "here")
    for answer in (b"", b"{}", b"<ListBucketResult><Key>&lt;html></Key></ListBucketResult>"):
        refuse_page(answer, "here")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_ends_before_its_size(name: str) -> None:
    """A look told 100 bytes and the read brings 60 of the same pin: no whole file."""
    told = {"s3": 'ETag: "7"', "gcs": "x-goog-generation: 7", "azblob": 'ETag: "7"'}[name]

    def answer(head: str) -> bytes:
        if name == "gcs" and "alt=media" not in head:
            body = b'{"generation": "7", "size": "100"}'
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        size, body = (100, b"") if head.startswith("HEAD") else (60, bytes(60))
        return f"HTTP/1.1 200 OK\r\n{told}\r\nContent-Length: {size}\r\n\r\n".encode() + body

    with (
        answering(answer) as endpoint,
        nowhere(name).open(endpoint).open("x") as file,
        pytest.raises(IntegrityError, match="60"),
    ):
        file.read()
