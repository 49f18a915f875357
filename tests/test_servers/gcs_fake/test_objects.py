"""Objects in the fake, by Google's own client."""

import gzip
import json

import pytest
import requests
from google.api_core import exceptions
from google.cloud import storage

from tests.servers.gcs_fake import GcsFake

MIB = 1024 * 1024


def put(bucket: storage.Bucket, name: str, data: bytes = b"data") -> storage.Blob:
    blob = bucket.blob(name)
    blob.upload_from_string(data)
    return blob


def test_bytes_metadata_and_checksums_come_back(near: storage.Bucket) -> None:
    """What was uploaded is downloaded, with its type, metadata, crc32c and md5."""
    blob = near.blob("a")
    blob.metadata = {"k": "v"}
    blob.upload_from_string(b"hello", content_type="text/plain")
    found = near.get_blob("a")
    assert found.download_as_bytes() == b"hello"
    assert (found.content_type, found.metadata, found.size) == ("text/plain", {"k": "v"}, 5)
    assert (found.crc32c, found.md5_hash) == ("mnG7TA==", "XUFAKrxLKna5cZ2REBfFkg==")
    assert found.metageneration == 1


@pytest.mark.parametrize("name", ["a b", "q?x=1&y", "100%", "#hash", "ü/🙂", "a//b", "+", "'\""])
def test_odd_names(near: storage.Bucket, name: str) -> None:
    """Every character of a name counts."""
    put(near, name, name.encode())
    assert near.blob(name).download_as_bytes() == name.encode()
    assert [blob.name for blob in near.list_blobs()] == [name]


@pytest.mark.parametrize("name", [".", "..", "a\nb", "x" * 1025])
def test_names_that_the_service_refuses(fake: GcsFake, name: str) -> None:
    """400, as there."""
    url = f"{fake.endpoint}/upload/storage/v1/b/near/o"
    answer = requests.post(url, params={"uploadType": "media", "name": name}, data=b"x", timeout=60)
    assert answer.status_code == 400
    assert answer.json()["error"]["errors"][0]["reason"] == "invalid"


def test_every_write_is_a_new_generation(near: storage.Bucket) -> None:
    """Generations grow; metadata changes raise the metageneration alone."""
    first = put(near, "g").generation
    blob = put(near, "g")
    assert blob.generation > first
    blob.metadata = {"a": "b"}
    blob.patch()
    assert (blob.metageneration, near.get_blob("g").generation) == (2, blob.generation)


def test_preconditions_on_a_target(near: storage.Bucket) -> None:
    """ifGenerationMatch: 0 is for nothing there, else exactly that generation."""
    blob = near.blob("c")
    blob.upload_from_string(b"1", if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        near.blob("c").upload_from_string(b"2", if_generation_match=0)
    near.blob("c").upload_from_string(b"2", if_generation_match=blob.generation)
    with pytest.raises(exceptions.PreconditionFailed):
        near.blob("c").upload_from_string(b"3", if_generation_match=blob.generation)
    assert near.blob("c").download_as_bytes() == b"2"


def test_preconditions_on_reads(near: storage.Bucket) -> None:
    """A false match is 412, a false not-match is 304; metageneration too."""
    blob = put(near, "r")
    with pytest.raises(exceptions.PreconditionFailed):
        blob.reload(if_generation_match=1)
    with pytest.raises(exceptions.NotModified):
        blob.reload(if_generation_not_match=blob.generation)
    with pytest.raises(exceptions.PreconditionFailed):
        blob.reload(if_metageneration_match=9)
    with pytest.raises(exceptions.NotModified):
        blob.reload(if_metageneration_not_match=1)
    blob.reload(if_generation_match=blob.generation, if_metageneration_match=1)


def test_preconditions_on_delete(near: storage.Bucket) -> None:
    """A delete of another generation is refused; of a missing object it is 404."""
    blob = put(near, "d")
    with pytest.raises(exceptions.PreconditionFailed):
        near.blob("d").delete(if_generation_match=blob.generation + 1)
    near.blob("d").delete(if_generation_match=blob.generation)
    with pytest.raises(exceptions.NotFound):
        near.blob("d").delete()


def test_a_precondition_that_is_no_number(fake: GcsFake) -> None:
    """400 that names the parameter."""
    url = f"{fake.endpoint}/storage/v1/b/near/o/x"
    answer = requests.get(url, params={"ifGenerationMatch": "abc"}, timeout=60)
    assert answer.status_code == 404
    requests.post(
        f"{fake.endpoint}/upload/storage/v1/b/near/o?uploadType=media&name=x", data=b"1", timeout=60
    )
    answer = requests.get(url, params={"ifGenerationMatch": "abc"}, timeout=60)
    assert (answer.status_code, answer.json()["error"]["errors"][0]["location"]) == (
        400,
        "ifGenerationMatch",
    )


def test_ranges(near: storage.Bucket) -> None:
    """Inclusive ranges; one past the end is 416."""
    blob = put(near, "r", b"0123456789")
    assert blob.download_as_bytes(start=2, end=4) == b"234"
    assert blob.download_as_bytes(start=7) == b"789"
    with pytest.raises(exceptions.RequestRangeNotSatisfiable):
        blob.download_as_bytes(start=10)


def test_errors_of_downloads_are_plain_text(fake: GcsFake) -> None:
    """As the service does where bytes were asked for, not JSON."""
    answer = requests.get(f"{fake.endpoint}/download/storage/v1/b/near/o/no?alt=media", timeout=60)
    assert (answer.status_code, answer.text) == (404, "No such object: near/no")


def test_gzip_is_unpacked_for_who_does_not_take_it(fake: GcsFake, near: storage.Bucket) -> None:
    """Decompressive transcoding; with Accept-Encoding: gzip the stored bytes come."""
    blob = near.blob("z")
    blob.content_encoding = "gzip"
    blob.upload_from_string(gzip.compress(b"plain"))
    url = f"{fake.endpoint}/download/storage/v1/b/near/o/z?alt=media"
    plain = requests.get(url, headers={"Accept-Encoding": "identity"}, timeout=60)
    packed = requests.get(url, headers={"Accept-Encoding": "gzip"}, stream=True, timeout=60)
    assert plain.content == b"plain"
    assert gzip.decompress(packed.raw.read(decode_content=False)) == b"plain"


def test_listing_pages_prefixes_and_offsets(near: storage.Bucket) -> None:
    """Byte order, page tokens, delimiter, startOffset inclusive, endOffset exclusive."""
    for name in ["a", "a-", "a/1", "a/2", "b/1", "c", "é"]:
        put(near, name)
    assert [blob.name for blob in near.list_blobs(page_size=2)] == [
        "a", "a-", "a/1", "a/2", "b/1", "c", "é",
    ]  # fmt: skip
    pages = near.list_blobs(delimiter="/", page_size=2)
    assert [blob.name for blob in pages] == ["a", "a-", "c", "é"]
    assert pages.prefixes == {"a/", "b/"}
    assert [blob.name for blob in near.list_blobs(start_offset="a/2", end_offset="c")] == [
        "a/2",
        "b/1",
    ]
    assert [blob.name for blob in near.list_blobs(prefix="a/")] == ["a/1", "a/2"]


def test_a_damaged_page_token(fake: GcsFake) -> None:
    """400, not a listing from the start."""
    answer = requests.get(f"{fake.endpoint}/storage/v1/b/near/o?pageToken=%00", timeout=60)
    assert answer.status_code == 400


def test_versions_are_kept_where_the_bucket_keeps_them(client: storage.Client) -> None:
    """An old generation is read, listed and erased; without versioning it is gone."""
    kept = client.bucket("kept")
    old = put(kept, "v", b"old").generation
    new = put(kept, "v", b"new").generation
    assert kept.blob("v", generation=old).download_as_bytes() == b"old"
    assert [blob.generation for blob in kept.list_blobs(versions=True)] == [old, new]
    kept.blob("v").delete()
    with pytest.raises(exceptions.NotFound):
        kept.blob("v").reload()
    assert kept.blob("v", generation=new).download_as_bytes() == b"new"
    kept.blob("v", generation=old).delete()
    assert [blob.generation for blob in kept.list_blobs(versions=True)] == [new]
    near = client.bucket("near")
    gone = put(near, "v").generation
    put(near, "v")
    with pytest.raises(exceptions.NotFound):
        near.blob("v", generation=gone).reload()


def test_compose(near: storage.Bucket) -> None:
    """Joined in order, a crc32c and no md5, at most 32 sources, sources pinned."""
    parts = [put(near, f"p{number}", bytes([65 + number])) for number in range(3)]
    joined = near.blob("joined")
    joined.compose(parts, if_generation_match=0)
    found = near.get_blob("joined")
    assert found.download_as_bytes() == b"ABC"
    assert (found.component_count, found.md5_hash) == (3, None)
    assert found.crc32c
    with pytest.raises(exceptions.PreconditionFailed):
        near.blob("joined").compose(parts, if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        near.blob("j2").compose(parts[:1], if_source_generation_match=[1])
    with pytest.raises(exceptions.BadRequest):
        near.blob("j3").compose([parts[0]] * 33)


def test_missing_buckets_and_bucket_rules(client: storage.Client) -> None:
    """404 for a bucket that is not there, 409 for one that is, and for one that is not empty."""
    with pytest.raises(exceptions.NotFound, match="bucket does not exist"):
        client.bucket("nowhere").blob("x").reload()
    with pytest.raises(exceptions.Conflict):
        client.create_bucket("near")
    put(client.bucket("near"), "x")
    with pytest.raises(exceptions.Conflict):
        client.bucket("near").delete()


def test_tokens_are_asked_for() -> None:
    """Without a token 401 ``required``, with a wrong one ``authError``, with an issued one 200."""
    with GcsFake(require_token=True) as fake:
        fake.make_bucket("near")
        url = f"{fake.endpoint}/storage/v1/b/near/o"
        bare = requests.get(url, timeout=60)
        wrong = requests.get(url, headers={"Authorization": "Bearer no"}, timeout=60)
        token = fake.issue_token()
        right = requests.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
    reasons = [json.loads(a.text)["error"]["errors"][0]["reason"] for a in (bare, wrong)]
    assert reasons == ["required", "authError"]
    assert (bare.status_code, wrong.status_code, right.status_code) == (401, 401, 200)
