"""Servers that trickle or fall silent: deadlines and aborts end what they would drag on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from calque.errors import Aborted, TimedOut
from calque.operator import Copier, Operator
from calque.operator.layers import Deadline, Retry, Timeout
from tests.operator.http.clouds import NAMES, answering, nowhere

SIZE = 12 * 1024 * 1024
ABOUT = {
    "s3": 'HTTP/1.1 200 OK\r\nConnection: close\r\nETag: "7"\r\nContent-Type: text/plain\r\n',
    "gcs": "HTTP/1.1 200 OK\r\nConnection: close\r\nx-goog-generation: 7\r\n",
    "azblob": 'HTTP/1.1 200 OK\r\nConnection: close\r\nETag: "7"\r\n',
}
RESOURCE = b'{"generation": "7", "size": "%d"}' % SIZE
EVERY_BYTE = pytest.mark.parametrize("byte", [b"x", b""], ids=["trickling", "silent"])
Answerer = Callable[[str], Iterator[bytes]]


class Peer:
    """A server that hangs where it is told to, until the test is over."""

    def __init__(self, byte: bytes) -> None:
        self._byte = byte
        self.ended = threading.Event()
        self.hanging = threading.Event()
        """A request that never ends is under way."""
        self.asked: list[str] = []

    def hang(self) -> Iterator[bytes]:
        self.hanging.set()
        while not self.ended.wait(0.05):
            yield self._byte

    def tell(self, body: bytes = b"", more: str = "", status: str = "200 OK") -> bytes:
        head = f"HTTP/1.1 {status}\r\nConnection: close\r\n{more}Content-Length: {len(body)}"
        return f"{head}\r\n\r\n".encode() + body


def _trickling(name: str, peer: Peer) -> Answerer:
    """An object whose body never ends; S3's tags do not either."""

    def answer(head: str) -> Iterator[bytes]:
        if name == "gcs" and "alt=media" not in head:
            yield peer.tell(RESOURCE)
            return
        yield (ABOUT[name] + f"Content-Length: {SIZE}\r\n\r\n").encode()
        if not head.startswith("HEAD"):
            yield from peer.hang()

    return answer


@pytest.mark.parametrize("name", NAMES)
@EVERY_BYTE
def test_a_deadline_bounds_a_body(name: str, byte: bytes) -> None:
    """However lively the bytes trickle, the whole is over when it must be."""
    peer = Peer(byte)
    with answering(_trickling(name, peer)) as endpoint:
        op = nowhere(name).open(endpoint, layers=(Deadline.after(0.7), Retry(), Timeout()))
        try:
            with pytest.raises(TimedOut):
                op.read("x")
        finally:
            peer.ended.set()


@pytest.mark.parametrize("name", NAMES)
@EVERY_BYTE
@pytest.mark.parametrize("tags", [True, False], ids=["with tags", "without"])
def test_an_abort_ends_a_body(name: str, byte: bytes, tags: bool) -> None:
    """A copy that is aborted while its source, or what is asked of its tags, trickles ends."""
    peer, target = Peer(byte), Operator.from_uri("memory://")
    with answering(_trickling(name, peer)) as endpoint:
        op = nowhere(name).open(endpoint, layers=(Retry(), Timeout()))
        _abort_hanging(op.copier("x", "y", into=target, stream=True, carry_tags=tags), peer)
    assert not target.exists("y")


@EVERY_BYTE
def test_an_abort_ends_part_copies(byte: bytes) -> None:
    """Parts that S3 is copying are given up, and the upload is dropped after them."""
    peer = Peer(byte)

    def answer(head: str) -> Iterator[bytes]:
        line = head.partition("\r\n")[0]
        peer.asked.append(line)
        if line.startswith("HEAD"):
            yield (ABOUT["s3"] + f"Content-Length: {SIZE}\r\n\r\n").encode()
        elif line.startswith("POST"):
            yield peer.tell(b"<InitiateMultipartUploadResult><UploadId>u</UploadId></I>")
        elif "x-amz-copy-source:" in head:
            yield b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n"
            yield from peer.hang()
        elif line.startswith("PUT"):
            yield peer.tell(more='ETag: "mark"\r\n')
        elif line.startswith("DELETE"):
            yield peer.tell(status="204 No Content")
        elif "tagging" in line:
            yield peer.tell(b"<Tagging><TagSet/></Tagging>")
        else:
            yield peer.tell(b"<Error><Code>NoSuchUpload</Code></Error>", status="404 Not Found")

    with answering(answer) as endpoint:
        op = nowhere("s3").open(endpoint, threshold=1024, part_size=5 * 1024 * 1024)
        _abort_hanging(op.copier("x", "y"), peer)
    assert any(line.startswith("DELETE") and "uploadId=u" in line for line in peer.asked)


@EVERY_BYTE
def test_an_abort_ends_blocks(byte: bytes) -> None:
    """Blocks that Azure is copying are given up."""
    peer = Peer(byte)

    def answer(head: str) -> Iterator[bytes]:
        if head.startswith("HEAD"):
            yield (ABOUT["azblob"] + f"Content-Length: {SIZE}\r\n\r\n").encode()
        elif head.startswith("PUT"):
            yield b"HTTP/1.1 201 Created\r\nContent-Length: 999999\r\n\r\n"
            yield from peer.hang()
        else:
            yield peer.tell(b"<BlockList><CommittedBlocks/><UncommittedBlocks/></BlockList>")

    with answering(answer) as endpoint:
        op = nowhere("azblob").open(endpoint, threshold=1024, part_size=5 * 1024 * 1024)
        _abort_hanging(op.copier("x", "y"), peer)


def test_an_abort_ends_a_pending_copy() -> None:
    """Azure's copy that stays pending is not waited for: it is aborted at the server."""
    peer = Peer(b"")

    def answer(head: str) -> Iterator[bytes]:
        line = head.partition("\r\n")[0]
        peer.asked.append(line)
        pending = "x-ms-copy-id: c\r\nx-ms-copy-status: pending\r\n"
        if line.startswith("HEAD"):
            if "/y" in line:
                peer.hanging.set()
            more = pending if "/y" in line else ""
            yield (ABOUT["azblob"] + more + "Content-Length: 5\r\n\r\n").encode()
        elif "comp=copy" in line:
            yield peer.tell(status="204 No Content")
        else:
            yield peer.tell(status="202 Accepted", more=f'ETag: "8"\r\n{pending}')

    with answering(answer) as endpoint:
        _abort_hanging(nowhere("azblob").open(endpoint).copier("x", "y"), peer)
    assert any("comp=copy" in line and "copyid=c" in line for line in peer.asked)


def test_a_commit_is_not_given_up() -> None:
    """The last piece to GCS commits: an abort in its midst waits to know, and comes too late."""
    peer, committing = Peer(b""), threading.Event()

    def answer(head: str) -> Iterator[bytes]:
        if head.startswith("POST"):
            yield peer.tell(more="Location: http://h/s?upload_id=u\r\n")
        elif "/*\r\n" in head:  # not the last piece yet
            yield peer.tell(more="Range: bytes=0-8388607\r\n", status="308 Resume Incomplete")
        else:
            committing.set()
            peer.ended.wait(60)
            yield peer.tell(RESOURCE)

    source = Operator.from_uri("memory://")
    source.write("x", bytes(SIZE))
    with answering(answer) as endpoint:
        copier = source.copier("x", "y", into=nowhere("gcs").open(endpoint), stream=True)
        failures: list[BaseException] = []
        stepping = threading.Thread(target=_drain, args=(copier, failures), daemon=True)
        stepping.start()
        assert committing.wait(60)
        aborting = threading.Thread(target=copier.abort, daemon=True)
        aborting.start()
        aborting.join(1.0)  # longer than a stop takes to be seen
        peer.ended.set()
        stepping.join(60)
        aborting.join(60)
    assert not failures
    assert copier.metadata.size == SIZE


def _abort_hanging(copier: Copier, peer: Peer) -> None:
    """Drive a copy until its peer hangs, abort it, and see both end although the peer does not."""
    failures: list[BaseException] = []
    stepping = threading.Thread(target=_drain, args=(copier, failures), daemon=True)
    stepping.start()
    try:
        assert peer.hanging.wait(60)
        aborting = threading.Thread(target=copier.abort, daemon=True)
        aborting.start()
        aborting.join(30)
        assert not aborting.is_alive(), "the abort waits for the peer"
        stepping.join(30)
        assert not stepping.is_alive(), "the step waits for the peer"
    finally:
        peer.ended.set()
    assert [type(each) for each in failures] == [Aborted]


def _drain(copier: Copier, failures: list[BaseException]) -> None:
    try:
        for _ in copier:
            pass
    except BaseException as error:
        failures.append(error)
