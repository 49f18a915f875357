"""Bytes that a server sends: believed only where they fit what is known of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from calque.errors import CalqueError, ConditionNotMatch, IntegrityError, NotFound
from calque.operator import Operator
from calque.values import MIB
from calque.values.crc import JOINABLE
from tests.operator.behaviour.case import content
from tests.operator.http.checksums import TRUE, flip_a_bit
from tests.operator.http.clouds import NAMES, Cloud, answering, nowhere, running
from tests.servers.proxy import Fault, FaultProxy, Reply

DATA = content(700_000)


def _damaged(reply: Reply) -> Reply:
    return replace(reply, body=flip_a_bit(reply.body))


def test_damaged_bytes_are_not_read(cloud: Cloud, between: FaultProxy) -> None:
    """One bit that turns on its way is an IntegrityError, for all ways to read the whole."""
    cloud.open().write("damaged", DATA)
    op = cloud.open(between.endpoint)
    assert op.read("damaged") == DATA
    between.add(Fault(method="GET", contains="damaged", edit=_damaged, times=None))
    with pytest.raises(IntegrityError, match="damaged"):
        op.read("damaged")
    with pytest.raises(IntegrityError):
        list(op.read_stream("damaged"))
    with pytest.raises(IntegrityError):
        op.read("damaged", length=len(DATA))


def test_damaged_bytes_are_not_copied(cloud: Cloud, between: FaultProxy) -> None:
    """Whatever the other side keeps; asked not to look, it copies."""
    cloud.open().write("streamed", DATA)
    source, target = cloud.open(between.endpoint), Operator.from_uri("memory://")
    between.add(Fault(method="GET", contains="streamed", edit=_for_bytes(_damaged), times=None))
    with pytest.raises(IntegrityError):
        source.copy("streamed", "made", into=target, stream=True)
    assert not target.exists("made")
    source.copy("streamed", "made", into=target, stream=True, verify="size")
    assert target.read("made") == flip_a_bit(DATA)


@pytest.mark.parametrize("concurrent", [1, 4])
def test_damaged_parts_are_not_copied(cloud: Cloud, between: FaultProxy, concurrent: int) -> None:
    """Ranges have no checksum of their own: all of them together are held against the whole's."""
    data = content(7 * MIB)
    cloud.open().write("parted", data)
    source = cloud.open(between.endpoint)
    with running("s3") as other, other.open(write_part=5 * MIB) as target:
        wanted = {"into": target, "stream": True, "stream_parts": True, "concurrent": concurrent}
        source.copy("parted", "whole", **wanted)
        assert target.read("whole") == data
        between.add(Fault(method="GET", contains="parted", edit=_damaged_part, times=None))
        copier = source.copier("parted", "made", **wanted)
        with pytest.raises(IntegrityError, match="parted"):
            copier.run()
        assert not target.exists("made")
        assert list(target.leftovers()) == []
        source.copy("parted", "made", **wanted, verify="size")
        assert target.read("made") != data


def test_damage_before_a_pause_is_found_after_it(cloud: Cloud, between: FaultProxy) -> None:
    """The process that goes on has not seen the first part: its CRC stands in the checkpoint, and
    all of them joined are not the source's. Nothing is read again to find out."""
    data = content(12 * MIB)
    cloud.open().write("paused", data)
    source = cloud.open(between.endpoint)
    found = source.stat("paused").checksum
    if found is None or found.algorithm not in JOINABLE:
        pytest.skip(f"{cloud.name} tells no CRC of it")
    with running("s3") as other, other.open(write_part=5 * MIB) as target:
        wanted = {"into": target, "stream": True, "stream_parts": True, "concurrent": 1}

        def copy_with_a_pause(path: str) -> None:
            copier = source.copier("paused", path, **wanted)
            next(copier)
            kept = copier.pause().to_json()
            between.reset()
            source.resume(kept, **wanted).run()
            ranges = [each.headers.get("range") for each in between.seen("GET", "paused")]
            assert sum(map(bool, ranges)) <= 2, "the first part is not read again"

        copy_with_a_pause("whole")
        assert target.read("whole") == data
        between.add(Fault(method="GET", contains="paused", edit=_damaged_part, times=2))
        with pytest.raises(IntegrityError, match="paused"):
            copy_with_a_pause("made")
        assert not target.exists("made")
        assert list(target.leftovers()) == []


def _damaged_part(reply: Reply) -> Reply:
    return _damaged(reply) if reply.status == 206 else reply


def _for_bytes(edit: Callable[[Reply], Reply]) -> Callable[[Reply], Reply]:
    """The edit of replies that carry the object; GCS answers what it knows of it by GET too."""
    return lambda reply: edit(reply) if len(reply.body) >= len(DATA) else reply


def test_damage_after_a_cut_is_found_too(cloud: Cloud, between: FaultProxy) -> None:
    """One checksum covers the bytes of all replies."""
    cloud.open().write("cut", DATA)
    op = cloud.open(between.endpoint)
    between.add(Fault(method="GET", contains="cut", cut=300_000))
    assert b"".join(op.read_stream("cut")) == DATA
    between.add(
        Fault(method="GET", contains="cut", cut=300_000),
        Fault(method="GET", contains="cut", edit=_damaged),
    )
    with pytest.raises(IntegrityError):
        list(op.read_stream("cut"))


def test_a_server_that_ignores_conditions_mixes_nothing(cloud: Cloud, between: FaultProxy) -> None:
    """After a reconnect the reply's own pin is compared: no half of one object and half of another.

    The proxy takes the condition out of the requests, as some servers do.
    """
    direct, other = cloud.open(), content(len(DATA))
    direct.write("pinned", DATA)
    pin = direct.stat("pinned").pin
    assert pin is not None
    with answering(_deaf(cloud, "pinned")) as endpoint:
        op = _anonymous(cloud, endpoint)
        for read in (lambda: op.read_stream("pinned"), lambda: op.read_stream("pinned", length=9)):
            assert b"".join(read())
        stream = op.read_stream("pinned", if_match=pin)
        assert next(stream)
        direct.write("pinned", other)
        with pytest.raises(ConditionNotMatch):
            list(stream)
        with pytest.raises(ConditionNotMatch):
            op.read("pinned", if_match=pin)
        with pytest.raises(ConditionNotMatch):
            op.read("pinned", offset=5, length=7, if_match=pin)
        with pytest.raises(ConditionNotMatch):
            op.read("pinned", length=0, if_match=pin)
        any_pin = {} if cloud.name == "gcs" else {"if_match": "*"}
        for given in ({}, any_pin):
            direct.write("pinned", other)
            unpinned = op.read_stream("pinned", **given)
            assert next(unpinned)
            direct.write("pinned", DATA)
            with pytest.raises(ConditionNotMatch):
                list(unpinned)


def _anonymous(cloud: Cloud, endpoint: str) -> Operator:
    """An operator whose requests may be changed on their way."""
    found = nowhere(cloud.name)
    return replace(found, place=cloud.place).open(endpoint)


def _deaf(cloud: Cloud, name: str) -> Callable[[str], bytes]:
    """A server that serves ranges of an object, no condition, and hangs up after 300,000 bytes."""
    direct = cloud.open()

    def answer(head: str) -> bytes:
        found = direct.stat(name)
        data = direct.read(name)
        asked = re.search(r"(?im)^(?:x-ms-)?range: bytes=(\d+)-(\d*)", head)
        start = int(asked[1]) if asked else 0
        stop = min(int(asked[2]) + 1 if asked and asked[2] else len(data), len(data))
        told = [
            f'ETag: "{found.etag}"',
            f"x-goog-generation: {found.version or ''}",
            f"Content-Length: {stop - start}",
            f"Content-Range: bytes {start}-{stop - 1}/{len(data)}" if asked else "X-All: yes",
        ]
        body = b"" if head.startswith("HEAD") else data[start:stop][:300_000]
        if "/o/" in head and "alt=media" not in head:  # GCS: what is known of it
            body = b'{"generation": "%s", "size": "%d"}' % (
                str(found.version).encode(),
                found.size,
            )
            told = [f"Content-Length: {len(body)}"]
        status = "206 Partial Content" if asked else "200 OK"
        return "\r\n".join([f"HTTP/1.1 {status}", *told, "", ""]).encode() + body

    return answer


SHORT = bytes(range(100))


def _pin(name: str) -> list[str]:
    return ["x-goog-generation: 7"] if name == "gcs" else ['ETag: "7"']


def _answer(name: str, status: str, *told: str, body: bytes = b"") -> bytes:
    head = [f"HTTP/1.1 {status}", *_pin(name), *told, "", ""]
    return "\r\n".join(head).encode() + body


@pytest.mark.parametrize("name", NAMES)
def test_a_server_that_ignores_ranges(name: str) -> None:
    """It sends all of the object: what was asked for is cut out of it."""
    whole = _answer(name, "200 OK", "Content-Length: 100", body=SHORT)
    with answering(lambda head: whole) as endpoint:
        op = nowhere(name).open(endpoint)
        assert op.read("x") == SHORT
        assert op.read("x", offset=10, length=20) == SHORT[10:30]
        assert op.read("x", length=1) == SHORT[:1]
        assert op.read("x", offset=99) == SHORT[99:]
        assert op.read("x", offset=90, length=50) == SHORT[90:]
        assert op.read("x", offset=100) == b""
        assert op.read("x", offset=1000, length=5) == b""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "told",
    [
        ("Content-Range: bytes 0-19/100", "Content-Length: 20"),
        ("Content-Range: bytes 11-30/100", "Content-Length: 20"),
        ("Content-Range: bytes 10-30/100", "Content-Length: 21"),
        ("Content-Range: bytes 10-29/100", "Content-Length: 30"),
        ("Content-Range: bytes 10-29/100", "Content-Length: 19"),
        ("Content-Range: bytes 29-10/100", "Content-Length: 20"),
        ("Content-Range: bytes 10-29/20", "Content-Length: 20"),
        ("Content-Range: 10-29", "Content-Length: 20"),
        ("Content-Range: bytes ten-29/100", "Content-Length: 20"),
        ("Content-Type: multipart/byteranges; boundary=x", "Content-Length: 20"),
    ],
    ids=" ".join,
)
def test_a_reply_of_another_range(name: str, told: tuple[str, str]) -> None:
    """206 that is not of the bytes that were asked for is an IntegrityError."""
    body = bytes(int(told[1].split()[1]))
    with answering(lambda head: _answer(name, "206 Partial", *told, body=body)) as endpoint:
        op = nowhere(name).open(endpoint)
        with pytest.raises(IntegrityError, match="x"):
            op.read("x", offset=10, length=20)


@pytest.mark.parametrize("name", NAMES)
def test_a_range_that_is_refused(name: str) -> None:
    """416 means that nothing is left, and is believed unless it tells a size that says otherwise:
    by its header, or as Amazon does."""
    amazon = b"<Error><Code>InvalidRange</Code><ActualObjectSize>100</ActualObjectSize></Error>"
    for told, body in (((), b""), (("Content-Range: bytes */100",), b""), ((), amazon)):
        length = f"Content-Length: {len(body)}"
        reply = _answer(name, "416 Range", *told, length, body=body)
        with answering(lambda head, reply=reply: reply) as endpoint:
            op = nowhere(name).open(endpoint)
            assert op.read("x", offset=100) == b""
            assert op.read("x", offset=150, length=5) == b""
            if told or (body and name == "s3"):
                with pytest.raises(IntegrityError, match="knows no bytes from 10 of 100"):
                    op.read("x", offset=10, length=20)
            else:
                assert op.read("x", offset=10, length=20) == b""


@pytest.mark.parametrize("name", NAMES)
def test_a_part_where_the_whole_was_asked_for(name: str) -> None:
    """206 without a range being asked for: the rest is asked for, or it is no whole."""
    asked: list[str] = []

    def answer(head: str) -> bytes:
        asked.append(head)
        first = "range: bytes" not in head.lower()
        told = "bytes 0-49/100" if first else "bytes 50-99/100"
        part = SHORT[:50] if first else SHORT[50:]
        return _answer(
            name, "206 Partial", f"Content-Range: {told}", "Content-Length: 50", body=part
        )

    with answering(answer) as endpoint:
        assert nowhere(name).open(endpoint).read("x") == SHORT
    assert len(asked) == 2


@pytest.mark.parametrize("name", NAMES)
def test_more_bytes_than_the_range(name: str) -> None:
    """Chunks that go on after the range's end are refused, not given out."""
    body = b"32\r\n" + bytes(50) + b"\r\n0\r\n\r\n"
    told = ("Content-Range: bytes 10-29/100", "Transfer-Encoding: chunked")
    reply = _answer(name, "206 Partial", *told, body=body)
    with answering(lambda head: reply) as endpoint, pytest.raises(IntegrityError):
        nowhere(name).open(endpoint).read("x", offset=10, length=20)


@pytest.mark.parametrize("name", NAMES)
def test_an_object_that_changes_its_size_midway(name: str) -> None:
    """Two replies of one pin that tell two sizes cannot be of one object."""

    def answer(head: str) -> bytes:
        if "range: bytes=50-" in head.lower():
            told = ("Content-Range: bytes 50-98/99", "Content-Length: 49")
            return _answer(name, "206 Partial", *told, body=SHORT[50:99])
        return _answer(name, "200 OK", "Content-Length: 100", body=SHORT[:50])

    with answering(answer) as endpoint, pytest.raises(IntegrityError):
        nowhere(name).open(endpoint).read("x")


def test_every_checksum_of_a_reply_is_held_against_the_bytes(cloud: Cloud) -> None:
    """Each kind by itself is enough to find a damage, where the cloud has it."""
    if cloud.name == "s3":
        told = {kind: f"x-amz-checksum-{kind}: " for kind in TRUE if kind != "md5"}
        told["md5"] = "ETag: "
    elif cloud.name == "gcs":
        told = {kind: f"x-goog-hash: {kind}=" for kind in ("crc32c", "md5")}
    else:
        told = {"md5": "Content-MD5: "}
    for kind, header in told.items():
        value = TRUE[kind](SHORT)
        if header == "ETag: ":
            value = hashlib.md5(SHORT).hexdigest()
        pin = [] if header == "ETag: " else _pin(cloud.name)
        for body, fits in ((SHORT, True), (flip_a_bit(SHORT), False)):
            lines = ["HTTP/1.1 200 OK", *pin, header + value, "Content-Length: 100", "", ""]
            reply = "\r\n".join(lines).encode() + body
            with answering(lambda head, reply=reply: reply) as endpoint:  # type: ignore[misc]
                op = nowhere(cloud.name).open(endpoint)
                if fits:
                    assert op.read("x") == SHORT
                else:
                    with pytest.raises(IntegrityError, match=kind):
                        op.read("x")


@pytest.mark.parametrize(
    "header",
    [
        "x-amz-server-side-encryption: aws:kms",
        "x-amz-server-side-encryption: aws:kms:dsse",
        "x-amz-server-side-encryption-customer-algorithm: AES256",
    ],
)
def test_etags_of_encrypted_objects_are_no_md5(header: str) -> None:
    """Keys of KMS and of customers make others; and an option says it of a whole server."""
    etag = hashlib.md5(b"something else").hexdigest()
    told = ("Content-Length: 100", f"x-else: {etag}")
    lines = ["HTTP/1.1 200 OK", f'ETag: "{etag}"', header, *told, "", ""]
    with answering(lambda head: "\r\n".join(lines).encode() + SHORT) as endpoint:
        assert nowhere("s3").open(endpoint).read("x") == SHORT
    plain = [line for line in lines if line != header]
    with answering(lambda head: "\r\n".join(plain).encode() + SHORT) as endpoint:
        with pytest.raises(IntegrityError, match="md5"):
            nowhere("s3").open(endpoint).read("x")
        assert nowhere("s3").open(endpoint, md5_etags=False).read("x") == SHORT


def test_checksums_of_parts_say_nothing_of_the_whole() -> None:
    """A composite checksum is not held against the bytes."""
    for told in (
        ("x-amz-checksum-sha256: AAAA-2",),
        ("x-amz-checksum-crc32: AAAAAA==", "x-amz-checksum-type: COMPOSITE"),
    ):
        reply = _answer("s3", "200 OK", *told, "Content-Length: 100", body=SHORT)
        with answering(lambda head, reply=reply: reply) as endpoint:  # type: ignore[misc]
            assert nowhere("s3").open(endpoint).read("x") == SHORT


def test_another_version_than_was_asked_for() -> None:
    """A server that knows no versions gives the newest bytes: not those that were named."""
    reply = _answer("s3", "200 OK", "Content-Length: 100", body=SHORT)
    with answering(lambda head: reply) as endpoint:
        op = nowhere("s3").open(endpoint, versions=True)
        for length in (None, 0):
            with pytest.raises(ConditionNotMatch, match="version"):
                op.read("x", version="v1", length=length)
    newer = _answer("s3", "200 OK", "x-amz-version-id: v2", "Content-Length: 100", body=SHORT)
    with answering(lambda head: newer) as endpoint:
        op = nowhere("s3").open(endpoint, versions=True)
        assert op.read("x", version="v2") == SHORT
        with pytest.raises(ConditionNotMatch, match="version"):
            op.read("x", version="null")


def test_large_objects_in_parts_are_covered(cloud: Cloud, between: FaultProxy) -> None:
    """What was written in parts is held against the checksum of the whole, where one is kept."""
    data = content(9 * MIB)
    cloud.open().write("large", data)
    op = cloud.open(between.endpoint)
    assert op.read("large") == data
    if op.stat("large").checksum is None:
        pytest.skip(f"{cloud.name} keeps no checksum of what is written in parts")
    between.add(Fault(method="GET", contains="large", edit=_for_bytes(_damaged), times=None))
    with pytest.raises(IntegrityError):
        op.read("large")


def test_what_is_not_there_stays_not_found(cloud: Cloud) -> None:
    """The careful way changes no other error."""
    with pytest.raises(NotFound):
        cloud.open().read("missing")
    with pytest.raises(CalqueError):
        cloud.open().read("missing", offset=3, length=4)


def test_a_part_that_comes_as_200(cloud: Cloud, between: FaultProxy) -> None:
    """Some servers (rclone's) answer a range by 200 and name it: it is not taken for the whole."""
    cloud.open().write("odd", DATA)
    op = cloud.open(between.endpoint)

    def call_it_ok(reply: Reply) -> Reply:
        return replace(reply, status=200) if reply.status == 206 else reply

    between.add(Fault(method="GET", contains="odd", edit=call_it_ok, times=None))
    assert op.read("odd", offset=5, length=7) == DATA[5:12]
    assert op.read("odd", offset=len(DATA) - 3) == DATA[-3:]
    assert op.read("odd", length=2) == DATA[:2]
    assert op.read("odd") == DATA
    between.add(Fault(method="GET", contains="odd", cut=300_000))
    assert b"".join(op.read_stream("odd")) == DATA


def test_a_server_that_holds_other_bytes_than_were_sent(cloud: Cloud, between: FaultProxy) -> None:
    """What a server tells of a write is held against what was written."""
    wrong = TRUE["crc32c" if cloud.name == "gcs" else "crc32"](b"other")
    told = {"s3": ("x-amz-checksum-crc32", wrong), "azblob": ("Content-MD5", TRUE["md5"](b"other"))}

    def tell_other(reply: Reply) -> Reply:
        if cloud.name == "gcs":
            body = re.sub(rb'("crc32c": *)"[^"]*"', rb'\1"%s"' % wrong.encode(), reply.body)
            assert body != reply.body
            return replace(reply, body=body)
        name, value = told[cloud.name]
        kept = reply.without(name)
        return replace(kept, headers={**kept.headers, name: value})

    op = cloud.open(between.endpoint)
    op.write("written", DATA)
    between.add(Fault(method="POST" if cloud.name == "gcs" else "PUT", edit=tell_other))
    with pytest.raises(IntegrityError, match="written"):
        op.write("written", DATA)
