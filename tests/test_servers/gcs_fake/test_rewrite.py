"""Rewrites in the fake, by Google's own client and by hand."""

from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.cloud import storage

from tests.servers.gcs_fake import GcsFake

MIB = 1024 * 1024
WEEK = 7 * 24 * 3600


def rewrite(fake: GcsFake, body: Any = None, target: str = "far/o/t", **query: str) -> Any:
    return requests.post(
        f"{fake.endpoint}/storage/v1/b/near/o/src/rewriteTo/b/{target}",
        params=query,
        json=body,
        timeout=60,
    )


@pytest.fixture(autouse=True)
def source(near: storage.Bucket) -> storage.Blob:
    """Three MiB with metadata."""
    blob = near.blob("src")
    blob.metadata = {"k": "v"}
    blob.upload_from_string(b"x" * (3 * MIB), content_type="text/x")
    return blob


def test_near_is_one_call_and_far_several(fake: GcsFake) -> None:
    """Location and class decide; the limit is a limit only across them."""
    limit = {"maxBytesRewrittenPerCall": str(MIB)}
    assert rewrite(fake, target="near/o/t", **limit).json()["done"]
    assert not rewrite(fake, {"storageClass": "COLDLINE"}, "near/o/u", **limit).json()["done"]
    assert not rewrite(fake, target="far/o/t", **limit).json()["done"]
    assert rewrite(fake, target="far/o/u").json()["done"]  # a default step is a gibibyte


def test_steps_carry_metadata_when_done(fake: GcsFake, client: storage.Client) -> None:
    """Exact counts at each call; the object appears with the last one, metadata kept."""
    answer = rewrite(fake, maxBytesRewrittenPerCall=str(MIB)).json()
    assert (answer["done"], answer["totalBytesRewritten"], answer["objectSize"]) == (
        False,
        str(MIB),
        str(3 * MIB),
    )
    assert client.bucket("far").get_blob("t") is None
    while not answer["done"]:
        answer = rewrite(
            fake, maxBytesRewrittenPerCall=str(MIB), rewriteToken=answer["rewriteToken"]
        ).json()
    assert "rewriteToken" not in answer
    found = client.bucket("far").get_blob("t")
    assert (found.size, found.metadata, found.content_type) == (3 * MIB, {"k": "v"}, "text/x")


def test_a_body_replaces_the_metadata(fake: GcsFake, client: storage.Client) -> None:
    """What the body does not name is gone."""
    assert rewrite(fake, {"contentType": "text/y"}).status_code == 200
    found = client.bucket("far").get_blob("t")
    assert (found.metadata, found.content_type) == (None, "text/y")


def test_the_limit_is_whole_mebibytes_and_constant(fake: GcsFake) -> None:
    """Anything else is refused."""
    assert rewrite(fake, maxBytesRewrittenPerCall="1000").status_code == 400
    token = rewrite(fake, maxBytesRewrittenPerCall=str(MIB)).json()["rewriteToken"]
    changed = rewrite(fake, maxBytesRewrittenPerCall=str(2 * MIB), rewriteToken=token)
    assert changed.status_code == 400


def test_parameters_and_body_must_stay(fake: GcsFake) -> None:
    """With a token what is sent equals the first call; what is left out is remembered."""
    first = rewrite(fake, {"contentType": "a/b"}, maxBytesRewrittenPerCall=str(MIB)).json()
    token = first["rewriteToken"]
    assert rewrite(fake, {"contentType": "c/d"}, rewriteToken=token).status_code == 400
    assert rewrite(fake, rewriteToken=token, ifGenerationMatch="0").status_code == 400
    assert rewrite(fake, target="far/o/other", rewriteToken=token).status_code == 400
    assert rewrite(fake, rewriteToken="made-up").status_code == 400
    going_on = rewrite(fake, rewriteToken=token).json()
    assert going_on["totalBytesRewritten"] == str(2 * MIB)


def test_a_token_may_be_sent_again_and_ages(fake: GcsFake) -> None:
    """A repeat goes on from the same place; after a week it is 410."""
    token = rewrite(fake, maxBytesRewrittenPerCall=str(MIB)).json()["rewriteToken"]
    twice = [rewrite(fake, rewriteToken=token).json()["totalBytesRewritten"] for _ in range(2)]
    assert twice == [str(2 * MIB)] * 2
    born = fake.world.now()
    fake.world.now = lambda: born + WEEK + 60
    assert rewrite(fake, rewriteToken=token).status_code == 410


def test_conditions_on_both_sides(fake: GcsFake, source: storage.Blob) -> None:
    """Source and target generations are checked at every call, the last included."""
    assert rewrite(fake, ifSourceGenerationMatch="1").status_code == 412
    assert rewrite(fake, sourceGeneration="1").status_code == 404
    assert rewrite(fake, ifSourceMetagenerationMatch="7").status_code == 412
    good = {"ifGenerationMatch": "0", "maxBytesRewrittenPerCall": str(2 * MIB)}
    token = rewrite(fake, **good).json()["rewriteToken"]
    assert rewrite(fake).status_code == 200
    assert rewrite(fake, rewriteToken=token).status_code == 412


def test_a_source_that_changes_midway(fake: GcsFake, near: storage.Bucket) -> None:
    """The pinned generation is gone: 404 by its number, 412 by its condition."""
    generation = str(near.get_blob("src").generation)
    limit = str(MIB)
    by_number = rewrite(fake, sourceGeneration=generation, maxBytesRewrittenPerCall=limit).json()
    by_match = rewrite(
        fake,
        ifSourceGenerationMatch=generation,
        maxBytesRewrittenPerCall=limit,
        target="far/o/u",
    ).json()
    near.blob("src").upload_from_string(b"y" * (3 * MIB))
    assert rewrite(fake, rewriteToken=by_number["rewriteToken"]).status_code == 404
    again = rewrite(fake, target="far/o/u", rewriteToken=by_match["rewriteToken"])
    assert again.status_code == 412


def test_the_client_sees_preconditions(client: storage.Client, source: storage.Blob) -> None:
    """Google's client raises what the fake answers."""
    target = client.bucket("far").blob("t")
    target.rewrite(source, if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        client.bucket("far").blob("t").rewrite(source, if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        client.bucket("far").blob("u").rewrite(source, if_source_generation_match=1)
