"""Many at the same time: conditions hold in the commit, and listings lose nothing."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from calque.store.project import Project
from calque.store.uplink.verbs.multipart import MultipartUpload
from tests.gateway.world import Answer, World

MANY = 8


def at_once(work: Callable[[int], Answer]) -> list[Answer]:
    """The same by many threads, which begin together."""
    start = threading.Barrier(MANY)

    def run(number: int) -> Answer:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(MANY) as pool:
        return [*pool.map(run, range(MANY))]


def begin(world: World, bucket: str, data: bytes) -> tuple[str, bytes]:
    """An upload of one part to ``k``: its query, and the document that completes it."""
    made = world.ask("POST", f"/{bucket}/k", "uploads").body.decode()
    upload = made.partition("<UploadId>")[2].partition("</UploadId>")[0]
    query = f"uploadId={upload}"
    etag = world.ask("PUT", f"/{bucket}/k", f"partNumber=1&{query}", {}, data).headers["etag"]
    part = f"<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>"
    return query, f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>".encode()


@pytest.mark.parametrize("verb", ["put", "put larger", "copy", "complete"])
@pytest.mark.parametrize("condition", ["if-none-match", "if-match"])
def test_one_of_many_wins(world: World, bucket: str, verb: str, condition: str) -> None:
    """Of eight writers with one condition one succeeds; what is there then is what it wrote."""
    path, told = f"/{bucket}/k", {"if-none-match": "*"}
    if condition == "if-match":
        told = {"if-match": world.ask("PUT", path, body=b"before").headers["etag"]}
    bodies = [bytes([65 + number]) * (50_000 if verb == "put larger" else 9) for number in range(8)]
    for number, body in enumerate(bodies):
        if verb == "copy":
            world.project.upload(bucket, f"from/{number}", body)
    begun = [begin(world, bucket, body) for body in bodies] if verb == "complete" else []

    def write(number: int) -> Answer:
        if verb == "complete":
            query, document = begun[number]
            return world.ask("POST", path, query, told, document)
        if verb == "copy":
            headers = told | {"x-amz-copy-source": f"{bucket}/from/{number}"}
            return world.ask("PUT", path, "", headers)
        return world.ask("PUT", path, "", told, bodies[number])

    answers = at_once(write)
    statuses = Counter(each.status for each in answers)
    assert statuses[200] == 1, [each.body for each in answers]
    assert set(statuses) <= {200, 409, 412}
    (winner,) = [number for number, each in enumerate(answers) if each.status == 200]
    assert world.ask("GET", path).body == bodies[winner]


def test_one_upload_completed_by_many(world: World, bucket: str) -> None:
    """Each is told the same: a repeat after success gives the same answer."""
    query, document = begin(world, bucket, b"once")
    answers = at_once(lambda _: world.ask("POST", f"/{bucket}/k", query, {}, document))
    assert {each.status for each in answers} == {200}
    etags = {each.body.partition(b"<ETag>")[2].partition(b"</ETag>")[0] for each in answers}
    assert len(etags) == 1


def test_one_upload_completed_differently(world: World, bucket: str) -> None:
    """Each has parts of its own in mind: one gets them, and nobody else is told so, nor later."""
    query, _ = begin(world, bucket, b"part 1")
    documents = []
    for number in range(1, MANY + 1):
        sent = world.ask(
            "PUT", f"/{bucket}/k", f"partNumber={number}&{query}", {}, f"part {number}".encode()
        )
        part = f"<Part><PartNumber>{number}</PartNumber><ETag>{sent.headers['etag']}</ETag></Part>"
        documents.append(f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>".encode())
    path = f"/{bucket}/k"
    answers = at_once(lambda number: world.ask("POST", path, query, {}, documents[number]))
    (winner,) = [number for number, each in enumerate(answers) if each.status == 200]
    assert world.ask("GET", path).body == f"part {winner + 1}".encode()
    for number, document in enumerate(documents):
        again = world.ask("POST", path, query, {}, document)
        assert again.code == ("" if number == winner else "NoSuchUpload")


def test_every_key_once_while_others_come_and_go(world: World, client: Any, bucket: str) -> None:
    """Keys that are there all the while are listed once each, whatever happens around them."""
    kept = [f"{folder}/{number:03}" for folder in "ab" for number in range(60)]
    for key in kept:
        world.project.upload(bucket, key, b"")
    is_over = threading.Event()

    def disturb() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            key = f"{'ab'[number % 2]}/{number % 60:03}-more"
            world.project.upload(bucket, key, b"")
            if number % 3:
                world.project.delete_object(bucket, key)

    with ThreadPoolExecutor(1) as pool:
        disturbing = pool.submit(disturb)
        try:
            for verb in ("list_objects", "list_objects_v2"):
                pages = client.get_paginator(verb).paginate(
                    Bucket=bucket, PaginationConfig={"PageSize": 7}
                )
                found = [each["Key"] for page in pages for each in page.get("Contents", [])]
                assert found == sorted(set(found)), "in order, and none twice"
                assert [key for key in found if not key.endswith("more")] == kept
        finally:
            is_over.set()
        disturbing.result()


def test_a_bucket_goes_with_its_uploads(world: World, client: Any) -> None:
    """Nothing but uploads under way: it goes, and they with it; nobody goes on with them."""
    client.create_bucket(Bucket="going")
    query, document = begin(world, "going", b"x" * 100_000)
    client.delete_bucket(Bucket="going")
    client.create_bucket(Bucket="going")
    assert "Uploads" not in client.list_multipart_uploads(Bucket="going")
    assert world.ask("POST", "/going/k", query, {}, document).code == "NoSuchUpload"
    client.delete_bucket(Bucket="going")


@pytest.mark.parametrize(
    ("place", "verb"), [(Project, "copy_object"), (MultipartUpload, "copy_part")]
)
def test_a_source_that_goes_at_the_last_moment(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch, place: type, verb: str
) -> None:
    """It is what is missing then, and named: not the target, nor the upload of a part."""
    query = ""
    if verb == "copy_part":
        query = f"partNumber=2&{begin(world, bucket, b'first')[0]}"
    world.project.upload(bucket, "source", b"x" * 100)
    copy = getattr(place, verb)

    def copy_late(*args: Any, **options: Any) -> Any:
        world.project.delete_object(bucket, "source")
        return copy(*args, **options)

    monkeypatch.setattr(place, verb, copy_late)
    headers = {"x-amz-copy-source": f"{bucket}/source"}
    answer = world.ask("PUT", f"/{bucket}/k", query, headers)
    assert (answer.status, answer.code) == (404, "NoSuchKey")
    assert b"<Key>source</Key>" in answer.body


def replace_late(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str, place: type, verb: str
) -> str:
    """Make an object that somebody replaces when the store is first asked for ``verb``; its ETag
    before."""
    etag = world.ask("PUT", path, body=b"before").headers["etag"]
    run, to_come = getattr(place, verb), [b"and after"]

    def run_late(*args: Any, **options: Any) -> Any:
        while to_come:
            world.ask("PUT", path, body=to_come.pop())
        return run(*args, **options)

    monkeypatch.setattr(place, verb, run_late)
    return etag


@pytest.mark.parametrize(
    ("place", "verb"),
    [
        (Project, "delete_object"),
        (Project, "delete_objects"),
        (Project, "copy_object"),
        (MultipartUpload, "copy_part"),
    ],
)
def test_a_condition_holds_to_the_last_moment(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch, place: type, verb: str
) -> None:
    """Replaced after the look that found the ETag right: refused, and the new contents stay."""
    path, made = f"/{bucket}/k", f"/{bucket}/made"
    query = f"partNumber=2&{begin(world, bucket, b'first')[0]}" if verb == "copy_part" else ""
    etag = replace_late(world, monkeypatch, path, place, verb)
    source = {"x-amz-copy-source": path, "x-amz-copy-source-if-match": etag}
    wanted = f"<Object><Key>k</Key><ETag>{etag}</ETag></Object><Object><Key>none</Key></Object>"
    answer = {
        "delete_object": lambda: world.ask("DELETE", path, "", {"if-match": etag}),
        "delete_objects": lambda: world.ask(
            "POST", f"/{bucket}", "delete", {}, f"<Delete>{wanted}</Delete>".encode()
        ),
        "copy_object": lambda: world.ask("PUT", made, "", source),
        "copy_part": lambda: world.ask("PUT", f"/{bucket}/k", query, source),
    }[verb]()
    assert answer.code == "PreconditionFailed"
    assert world.ask("GET", path).body == b"and after"
    assert world.ask("GET", made).status == 404


def test_one_version_is_read(world: World, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told of an object, and its bytes, are of one contents, also in its copy."""
    path, made = f"/{bucket}/k", f"/{bucket}/made"
    for verb in ("download", "copy_object"):
        with monkeypatch.context() as patched:
            replace_late(world, patched, path, Project, verb)
            if verb == "download":
                got = world.ask("GET", path, "", {"range": "bytes=1-"})
                assert (got.headers["content-range"], got.body) == ("bytes 1-8/9", b"nd after")
            else:
                told = {"x-amz-copy-source": path, "x-amz-metadata-directive": "REPLACE"}
                assert world.ask("PUT", made, "", told).status == 200
                got = world.ask("GET", made)
                assert got.headers["etag"] == f'"{hashlib.md5(got.body).hexdigest()}"'
