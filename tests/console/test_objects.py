"""The browser of objects, over HTTP: names of every kind, pages, uploads, downloads, links."""

from __future__ import annotations

import shlex
import uuid
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
import requests

from calque.console.store_pages.objects import SORTED_UP_TO
from tests.console.world import SCRIPT, Visitor, World
from tests.store_client.test_store_commands import calque

NAMES = ["plain.txt", "ü späße 100%?#&.txt", SCRIPT, "a\nb", "../up", "x//y", "\"quoted'"]


@pytest.fixture
def bucket(world: World) -> str:
    """A bucket of its own."""
    name = f"b{uuid.uuid4().hex[:12]}"
    world.project.create_bucket(name)
    return name


def at(page: str, path: str, **more: str) -> str:
    rest = "".join(f"&{name}={quote(value, safe='')}" for name, value in more.items())
    return f"/{page}?path={quote(path, safe='')}{rest}"


@pytest.mark.parametrize("name", NAMES)
def test_names_are_the_users_text(world: World, visitor: Visitor, bucket: str, name: str) -> None:
    """Shown, never run; found, downloaded and deleted by their very bytes."""
    key = f"in/{name}"
    world.project.upload(bucket, key, b"content")
    shown = visitor.get(at("object", f"{bucket}/{key}"))
    assert shown.status_code == 200
    assert SCRIPT not in shown.text
    assert visitor.json(at("object", f"{bucket}/{key}"))["size"] == 7
    got = visitor.get(at("download", f"{bucket}/{key}"))
    assert got.content == b"content"
    assert got.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
    folder = f"{bucket}/{key[: key.rfind('/') + 1]}"
    assert SCRIPT not in visitor.get(at("objects", folder)).text
    assert key in [each["key"] for each in visitor.json(at("objects", folder))["entries"]]
    assert visitor.post(at("delete", f"{bucket}/{key}")).status_code == 200
    assert visitor.get(at("object", f"{bucket}/{key}")).status_code == 404


def test_folders_page_by_page_and_by_prefix(world: World, visitor: Visitor, bucket: str) -> None:
    """Each entry once, in order, whatever the page; a path that is no folder is a search."""
    keys = sorted(f"many/{number:03}" for number in range(230))
    for key in keys:
        world.project.upload(bucket, key, b"")
    world.project.upload(bucket, "many/200/deeper", b"")
    found, after = [], ""
    for _ in range(3):
        told = visitor.json(at("objects", f"{bucket}/many/", after=after))
        found += [each["key"] for each in told["entries"]]
        after = told["more"] or ""
    assert found == sorted([*keys, "many/200/"])
    assert told["more"] is None
    searched = visitor.json(at("objects", f"{bucket}/many/22"))["entries"]
    assert [each["key"] for each in searched] == keys[220:]
    assert visitor.json(at("objects", f"{bucket}/many/200/"))["crumbs"] == [
        [bucket, f"{bucket}/"],
        ["many", f"{bucket}/many/"],
        ["200", f"{bucket}/many/200/"],
    ]
    assert visitor.get(at("objects", "no-such-bucket/")).status_code == 404


def test_uploads_replace_nothing_unless_asked(world: World, visitor: Visitor, bucket: str) -> None:
    """Two files at once; the content type is kept; the same name again needs a word."""
    files = [("file", ("a.txt", b"one", "text/plain")), ("file", (SCRIPT, b"two", "text/html"))]
    assert visitor.post(at("upload", f"{bucket}/up/"), files=files).status_code == 200
    told = visitor.json(at("object", f"{bucket}/up/{SCRIPT}"))
    assert (told["size"], told["content_type"]) == (3, "text/html")
    again = {"file": ("a.txt", b"changed", "text/plain")}
    assert visitor.post(at("upload", f"{bucket}/up/"), files=again).status_code == 409
    assert world.project.download(bucket, "up/a.txt").read() == b"one"
    replaced = visitor.post(at("upload", f"{bucket}/up/"), files=again, data={"replace": "yes"})
    assert replaced.status_code == 200
    assert world.project.download(bucket, "up/a.txt").read() == b"changed"
    assert visitor.post(at("upload", f"{bucket}/up/")).status_code == 400
    wrong = visitor.post(at("upload", f"{bucket}/up/"), files=again, csrf="wrong")
    assert wrong.status_code == 403


@pytest.mark.parametrize("kind", ["text/html", "image/svg+xml", "application/xhtml+xml", "a\r\nb"])
def test_active_content_is_saved_and_never_shown(
    world: World, visitor: Visitor, bucket: str, kind: str
) -> None:
    """As an attachment, of no type that a browser would run, in a sandbox of its own."""
    metadata = {"calque:content_type": kind}
    world.project.upload(bucket, "page", b"<script>1</script>", metadata=metadata)
    got = visitor.get(at("download", f"{bucket}/page"))
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"].startswith("attachment")
    assert got.headers["content-security-policy"].startswith("sandbox")
    assert got.headers["x-content-type-options"] == "nosniff"


def test_a_deletion_says_how_many_before_it_deletes(
    world: World, visitor: Visitor, bucket: str
) -> None:
    """The question changes nothing; the answer deletes what lies below, and nothing beside it."""
    for key in ("f/1", "f/deep/2", "f", "f2"):
        world.project.upload(bucket, key, b"12345")
    asked = visitor.json(at("delete", f"{bucket}/f/", whole="yes"))
    assert (asked["objects"], asked["bytes"]) == (2, 10)
    assert len([*world.project.list_objects(bucket)]) == 4
    done = visitor.post(at("delete", f"{bucket}/f/", whole="yes"))
    assert "2 deleted" in done.text
    assert [each.key for each in world.project.list_objects(bucket)] == ["f", "f2"]
    assert visitor.post(at("delete", f"{bucket}/f", whole="yes")).status_code == 404
    assert visitor.json(at("delete", f"{bucket}/"))["objects"] == 2
    assert visitor.post(at("delete", f"{bucket}/")).status_code == 200
    assert bucket not in [each.name for each in world.project.list_buckets()]


def test_the_family_of_an_object(world: World, visitor: Visitor, bucket: str) -> None:
    """Original, copies, who is next in line; a copy frees nothing, the last holder all."""
    content = b"x" * 100_000
    world.project.upload(bucket, "a/original", content)
    alone = visitor.json(at("object", f"{bucket}/a/original"))["family"]
    assert alone["copy_count"] == 0
    assert alone["freed_bytes"] >= len(content)
    for name in ("first", "second"):
        answer = visitor.post(
            at("object/copy", f"{bucket}/a/original"), data={"to": f"{bucket}/b/{name}"}
        )
        assert answer.url.endswith(quote(f"{bucket}/b/{name}", safe=""))
    original = visitor.json(at("object", f"{bucket}/a/original"))["family"]
    assert original["is_original"]
    assert (original["freed_bytes"], original["heir"]) == (0, f"{bucket}/b/first")
    second = visitor.json(at("object", f"{bucket}/b/second"))["family"]
    assert not second["is_original"]
    assert (second["freed_bytes"], second["original"]["path"]) == (0, f"{bucket}/a/original")
    visitor.post(at("delete", f"{bucket}/a/original"))
    promoted = visitor.json(at("object", f"{bucket}/b/first"))["family"]
    assert promoted["is_original"]
    assert [each["path"] for each in promoted["copies"]] == [f"{bucket}/b/second"]


def test_a_folder_is_copied_and_renamed_as_a_whole(
    world: World, visitor: Visitor, bucket: str
) -> None:
    """The count comes first; all or nothing; what has a new name already is left alone."""
    for key in ("old/1", "old/deep/2", "older"):
        world.project.upload(bucket, key, b"12345")
    told = visitor.json(at("folder", f"{bucket}/old/"))
    assert (told["objects"], told["bytes"]) == (2, 10)
    copied = visitor.post(at("folder/copy", f"{bucket}/old/"), data={"to": f"{bucket}/copy/"})
    assert copied.status_code == 200
    rename = at("folder/rename", f"{bucket}/old/")
    assert visitor.post(rename, data={"to": f"{bucket}/copy/"}).status_code == 409
    assert visitor.post(rename, data={"to": f"{bucket}/new"}).status_code == 400
    assert visitor.post(rename, data={"to": f"{bucket}/old/deep/"}).status_code == 400
    assert visitor.post(rename, data={"to": f"{bucket}/new/"}).status_code == 200
    found = [each.key for each in world.project.list_objects(bucket)]
    assert found == ["copy/1", "copy/deep/2", "new/1", "new/deep/2", "older"]
    assert visitor.get(at("folder", f"{bucket}/none")).status_code == 400


def test_an_object_is_renamed(world: World, visitor: Visitor, bucket: str) -> None:
    """What has the new name already is left alone; a name that is none is refused; one that ends in
    a blank is taken as it is."""
    world.project.upload(bucket, "old", b"1")
    world.project.upload(bucket, "taken", b"2")
    path = at("object/rename", f"{bucket}/old")
    assert visitor.post(path, data={"to": f"{bucket}/taken"}).status_code == 409
    assert visitor.post(path, data={"to": f"{bucket}/"}).status_code == 400
    assert visitor.post(path, data={"to": f"{bucket}/new "}).status_code == 200
    assert sorted(each.key for each in world.project.list_objects(bucket)) == ["new ", "taken"]


def test_a_link_for_others(world: World, visitor: Visitor, bucket: str) -> None:
    """It opens the object without a session, and nothing else; it has an end."""
    world.project.upload(bucket, "share/späße 1+1.txt", b"shared")
    path = at("object/link", f"{bucket}/share/späße 1+1.txt")
    made = visitor.post(path, data={"hours": "2"}, headers={"Accept": "application/json"}).json()
    assert requests.get(made["link"], timeout=60).content == b"shared"
    other = made["link"].replace("share/", "share/other")
    assert requests.get(other, timeout=60).status_code == 403
    for hours in ("0", "999", "x", "-1"):
        assert visitor.post(path, data={"hours": hours}).status_code == 400


def test_a_bucket_is_made(visitor: Visitor) -> None:
    """And opened; one that is there already, or has a name that cannot be, is refused."""
    name = f"new-{uuid.uuid4().hex[:8]}"
    assert name in visitor.post("/bucket/create", data={"name": name}).url
    assert visitor.post("/bucket/create", data={"name": name}).status_code == 409
    assert visitor.post("/bucket/create", data={"name": "Ü"}).status_code == 400
    assert visitor.post("/bucket/create").status_code == 400


def test_the_commands_of_pages_are_commands(world: World, visitor: Visitor, bucket: str) -> None:
    """As they stand: what is copied into a shell does what the page says, whatever the name."""
    name = "ü späße 'quoted' $HOME.txt"
    world.project.upload(bucket, f"in/{name}", b"content")
    path = f"{bucket}/in/{name}"
    assert "7" in run_shown(visitor, at("object", path))
    assert name in run_shown(visitor, at("objects", f"{bucket}/in/"))
    assert bucket in run_shown(visitor, "/objects")
    run_shown(visitor, at("delete", f"{bucket}/in/", whole="yes"), "--yes")
    assert [*world.project.list_objects(bucket)] == []
    run_shown(visitor, at("delete", f"{bucket}/"))
    assert bucket not in [each.name for each in world.project.list_buckets()]


def run_shown(visitor: Visitor, page: str, *more: str) -> str:
    """Run the command that a page shows; what it prints."""
    words = shlex.split(visitor.json(page)["command"])
    environment = {}
    if words[0].startswith("CALQUE_PROJECT="):
        environment["CALQUE_PROJECT"] = words.pop(0).partition("=")[2]
    assert words.pop(0) == "calque"
    done = calque(*words, *more, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_a_large_folder_is_shown_at_once(world: World, visitor: Visitor, bucket: str) -> None:
    """In the order of the store, each entry once; sorted when one asks for it, and found by the
    beginning of its name."""
    keys = {f"big/{number:05}" for number in range(SORTED_UP_TO)}
    with ThreadPoolExecutor(4) as threads:
        [*threads.map(lambda key: world.project.upload(bucket, key, b""), keys)]
    small = visitor.json(at("objects", f"{bucket}/big/"))
    assert (small["order"], small["entries"][0]["key"]) == ("name", "big/00000")
    world.project.upload(bucket, "big/folder/deeper", b"")
    found, told = [], visitor.json(at("objects", f"{bucket}/big/"))
    assert told["order"] == "stored"
    assert "sort by name" in visitor.get(at("objects", f"{bucket}/big/")).text
    while True:
        found += [each["key"] for each in told["entries"]]
        if told["more"] is None:
            break
        told = visitor.json(at("objects", f"{bucket}/big/", order="stored", after=told["more"]))
    assert sorted(found) == sorted([*keys, "big/folder/"])
    by_name = visitor.json(at("objects", f"{bucket}/big/", order="name"))
    assert [each["key"] for each in by_name["entries"]] == sorted(keys)[:100]
    searched = visitor.json(at("objects", f"{bucket}/big/0099"))["entries"]
    assert [each["key"] for each in searched] == sorted(keys)[990:]
    wrong = visitor.get(at("objects", f"{bucket}/big/", order="stored", after="ü"))
    assert wrong.status_code == 400
