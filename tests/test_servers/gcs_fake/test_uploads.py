"""Uploads to the fake, by Google's own client and by hand."""

import io

import pytest
import requests
from google.api_core import exceptions
from google.cloud import storage

from tests.servers.gcs_fake import GcsFake

QUANTUM = 256 * 1024


def session(fake: GcsFake, name: str = "s", **query: str) -> str:
    answer = requests.post(
        f"{fake.endpoint}/upload/storage/v1/b/near/o",
        params={"uploadType": "resumable", "name": name, **query},
        timeout=60,
    )
    assert answer.status_code == 200
    return answer.headers["Location"]


def put(url: str, data: bytes, span: str) -> requests.Response:
    return requests.put(url, data=data, headers={"Content-Range": span}, timeout=60)


def test_resumable_by_the_client(near: storage.Bucket) -> None:
    """Chunks of 256 KiB join to the whole."""
    data = bytes(range(256)) * 4096
    blob = near.blob("big", chunk_size=QUANTUM)
    blob.upload_from_file(io.BytesIO(data), if_generation_match=0)
    assert near.blob("big").download_as_bytes() == data


def test_a_session_tells_what_it_has(fake: GcsFake, near: storage.Bucket) -> None:
    """308 with Range while unfinished; the finished session answers with its object again."""
    url = session(fake)
    assert "Range" not in put(url, b"", "bytes */*").headers
    answer = put(url, b"x" * QUANTUM, f"bytes 0-{QUANTUM - 1}/*")
    assert (answer.status_code, answer.headers["Range"]) == (308, f"bytes=0-{QUANTUM - 1}")
    done = put(url, b"tail", f"bytes {QUANTUM}-{QUANTUM + 3}/{QUANTUM + 4}")
    again = put(url, b"", "bytes */*")
    assert done.status_code == again.status_code == 200
    assert done.json()["generation"] == again.json()["generation"]
    assert near.get_blob("s").size == QUANTUM + 4


def test_offsets_and_lengths_are_exact(fake: GcsFake) -> None:
    """A gap, an odd length that is not the last, a false span: all refused."""
    url = session(fake)
    assert put(url, b"x", "bytes 5-5/*").status_code == 400
    assert put(url, b"x" * 1000, "bytes 0-999/*").status_code == 400
    assert put(url, b"x" * QUANTUM, "bytes 0-10/*").status_code == 400
    assert put(url, b"x", "nonsense").status_code == 400


def test_the_condition_holds_at_the_end_too(fake: GcsFake, near: storage.Bucket) -> None:
    """An object that appears during the session makes its last chunk fail."""
    url = session(fake, ifGenerationMatch="0")
    near.blob("s").upload_from_string(b"other")
    assert put(url, b"mine", "bytes 0-3/4").status_code == 412
    assert near.blob("s").download_as_bytes() == b"other"


def test_cancel_and_expiry(fake: GcsFake) -> None:
    """A cancelled session is 499, then 404; one of more than a week is 410."""
    url = session(fake)
    assert requests.delete(url, timeout=60).status_code == 499
    assert put(url, b"x", "bytes 0-0/1").status_code == 404
    url = session(fake)
    born = fake.world.now()
    fake.world.now = lambda: born + 8 * 24 * 3600
    assert put(url, b"x", "bytes 0-0/1").status_code == 410


def test_wrong_checksums_are_refused(near: storage.Bucket, fake: GcsFake) -> None:
    """md5 and crc32c that the caller claims are compared, in sessions too."""
    blob = near.blob("bad")
    blob.crc32c = "AAAAAA=="
    with pytest.raises(exceptions.BadRequest, match="CRC32C"):
        blob.upload_from_string(b"data", checksum=None)
    url = session(fake)
    headers = {"Content-Range": "bytes 0-3/4", "X-Goog-Hash": "crc32c=AAAAAA=="}
    assert requests.put(url, data=b"data", headers=headers, timeout=60).status_code == 400
    assert near.get_blob("bad") is None
    assert near.get_blob("s") is None
