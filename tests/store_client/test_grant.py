"""Access grants: serialised, narrowed, enforced by the satellite."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pickle
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from calque.errors import IntegrityError, InvalidInput, NotFound, PermissionDenied
from calque.operator import Operator
from calque.store.embedded import EmbeddedStore
from calque.store.filesystem import CalqueFileSystem
from calque.store.open_project import open_project
from calque.store.project import Project
from calque.store.serve import serve_store
from calque.store.uplink.encryption.access import EncryptionAccess, Prefix
from calque.store.uplink.encryption.metadata import open_metadata, seal_metadata
from calque.store.uplink.grant import AccessGrant
from tests.store_client.world import BUCKET, OTHER, World


@pytest.fixture
def filled(plain_world: World) -> World:
    for key in ("in/a", "in/deep/b", "out/c", "in"):
        plain_world.project.upload(BUCKET, key, key.encode(), metadata={"k": key})
    plain_world.project.upload(OTHER, "x", b"x")
    return plain_world


def test_a_grant_survives_as_text(filled: World) -> None:
    """A grant read from its text gives the same access, whole or narrowed."""
    whole = AccessGrant.parse(filled.project.access.serialize())
    assert filled.through(whole).download(BUCKET, "in/a").read() == b"in/a"
    narrow = AccessGrant.parse(whole.restrict(Prefix(BUCKET, "in/")).serialize() + "\n")
    assert filled.through(narrow).download(BUCKET, "in/a").read() == b"in/a"


def test_grants_do_not_leak(filled: World) -> None:
    """Neither repr nor pickle shows a key."""
    grant = filled.project.access
    root = grant.encryption.root
    assert root is not None
    for secret in (root.reveal(), bytes(grant.api_key)):
        shown = repr(grant) + repr(filled.project)
        assert secret.hex() not in shown
        assert base64.b64encode(secret).decode() not in shown
        assert str(secret) not in shown
    with pytest.raises(TypeError):
        pickle.dumps(grant)


def damaged(text: str) -> dict[str, str]:
    body = text.removeprefix("calque1-")
    flipped = body[:40] + ("A" if body[40] != "A" else "B") + body[41:]
    return {
        "empty": "",
        "foreign": "AKIAIOSFODNN7EXAMPLE",
        "cut": text[:-5],
        "only the mark": "calque1-",
        "one character changed": "calque1-" + flipped,
        "not base64": "calque1-" + body[:-1] + "!",
        "unicode": "calque1-ü" + body,
    }


@pytest.mark.parametrize("how", damaged("calque1-" + "x" * 60))
def test_damaged_grants_are_refused(filled: World, how: str) -> None:
    """A grant that is not whole is refused without being shown."""
    text = damaged(filled.project.access.serialize())[how]
    with pytest.raises(InvalidInput) as caught:
        AccessGrant.parse(text)
    assert len(text) < 30 or text[10:30] not in str(caught.value)


def resealed(grant: AccessGrant, change: Callable[[dict[str, Any]], None]) -> AccessGrant:
    """A grant changed by somebody who also mends the checksum."""
    body = grant.serialize().removeprefix("calque1-")
    payload = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))[:-8])
    change(payload)
    data = json.dumps(payload).encode()
    whole = data + hashlib.sha256(data).digest()[:8]
    return AccessGrant.parse("calque1-" + base64.urlsafe_b64encode(whole).decode().rstrip("="))


def test_a_tampered_key_is_refused_by_the_satellite(filled: World) -> None:
    """Whoever mends the checksum still cannot make an API key."""
    narrow = filled.project.access.restrict(delete=False)

    def drop_restriction(payload: dict[str, Any]) -> None:
        key = bytearray(base64.b64decode(payload["k"]))
        key[-1] ^= 1
        payload["k"] = base64.b64encode(bytes(key)).decode()

    forged = filled.through(resealed(narrow, drop_restriction))
    with pytest.raises(PermissionDenied):
        forged.stat(BUCKET, "in/a")


def test_a_foreign_grant_is_refused(filled: World, make_world: Callable[..., World]) -> None:
    """The grant of another store opens nothing here."""
    other = make_world()
    stranger = filled.through(other.project.access)
    with pytest.raises(PermissionDenied):
        stranger.download(BUCKET, "in/a")


def attempts(project: Project) -> dict[str, Callable[[], object]]:
    """One call of each kind inside ``in/``."""
    return {
        "read": lambda: project.download(BUCKET, "in/a").read(),
        "list": lambda: list(project.list_objects(BUCKET, "in/")),
        "write": lambda: project.upload(BUCKET, f"in/new-{os.urandom(4).hex()}", b"x"),
        "delete": lambda: project.delete_object(BUCKET, "in/deep/b"),
    }


@pytest.mark.parametrize("allowed", ["read", "list", "write", "delete"])
def test_operations_are_enforced(filled: World, allowed: str) -> None:
    """A grant for one operation allows that one and no other."""
    flags = {name: name == allowed for name in ("read", "write", "list", "delete")}
    project = filled.through(filled.project.access.restrict(**flags))
    for name, attempt in attempts(project).items():
        if name == allowed:
            attempt()
        else:
            with pytest.raises(PermissionDenied):
                attempt()


def test_the_time_is_enforced(filled: World) -> None:
    """Before its time and after it a grant is refused."""
    now, day = datetime.now(UTC), timedelta(days=1)
    grant = filled.project.access
    filled.through(grant.restrict(not_before=now - day, not_after=now + day)).stat(BUCKET, "in/a")
    for late in (grant.restrict(not_before=now + day), grant.restrict(not_after=now - day)):
        with pytest.raises(PermissionDenied, match="time"):
            filled.through(late).stat(BUCKET, "in/a")


def test_writing_without_deleting_may_not_overwrite(filled: World) -> None:
    """A write-only grant adds objects and leaves those that exist alone."""
    project = filled.through(filled.project.access.restrict(delete=False))
    project.upload(BUCKET, "in/fresh", b"x")
    with pytest.raises(PermissionDenied):
        project.upload(BUCKET, "in/a", b"overwritten")
    with pytest.raises(PermissionDenied):
        project.copy_object(BUCKET, "in/deep/b", BUCKET, "in/a")
    assert filled.project.download(BUCKET, "in/a").read() == b"in/a"


def test_prefixes_hold_on_the_client(filled: World) -> None:
    """Inside the prefix everything works; outside there is no key to even name an object."""
    project = filled.through(filled.project.access.restrict(Prefix(BUCKET, "in/")))
    assert [e.key for e in project.list_objects(BUCKET, "in/")] == ["in/a", "in/deep/b"]
    assert dict(project.stat(BUCKET, "in/deep/b").metadata) == {"k": "in/deep/b"}
    for bucket, key in ((BUCKET, "out/c"), (BUCKET, "in"), (OTHER, "x")):
        with pytest.raises(PermissionDenied, match="does not reach") as caught:
            project.stat(bucket, key)
        assert "photos/in/" in str(caught.value)
    with pytest.raises(PermissionDenied):
        list(project.list_objects(BUCKET))


def test_prefixes_hold_on_the_satellite(filled: World) -> None:
    """Whoever has the narrowed API key and, somehow, every name is still denied outside."""
    whole = filled.project.access
    narrow = whole.restrict(Prefix(BUCKET, "in/"))
    cheat = filled.through(AccessGrant(whole.address, narrow.api_key, whole.encryption))
    cheat.copy_object(BUCKET, "in/a", BUCKET, "in/copy")
    outside: list[Callable[[], object]] = [
        lambda: cheat.stat(BUCKET, "in"),
        lambda: cheat.delete_object(BUCKET, "in"),
        lambda: cheat.copy_object(BUCKET, "in", BUCKET, "in/stolen"),
        lambda: cheat.stat(BUCKET, "out/c"),
        lambda: cheat.download(BUCKET, "out/c"),
        lambda: cheat.upload(BUCKET, "out/new", b"x"),
        lambda: cheat.delete_object(BUCKET, "out/c"),
        lambda: cheat.copy_object(BUCKET, "in/a", BUCKET, "out/copy"),
        lambda: cheat.copy_object(BUCKET, "out/c", BUCKET, "in/stolen"),
        lambda: cheat.move_object(BUCKET, "in/a", BUCKET, "out/a"),
        lambda: cheat.move_object(BUCKET, "out/c", BUCKET, "in/c"),
        lambda: list(cheat.list_objects(BUCKET)),
        lambda: list(cheat.list_objects(BUCKET, "out/")),
        lambda: cheat.stat(OTHER, "x"),
    ]
    for attempt in outside:
        with pytest.raises(PermissionDenied):
            attempt()


def test_narrowing_twice(filled: World) -> None:
    """A narrowed grant is narrowed further, never widened."""
    once = filled.project.access.restrict(Prefix(BUCKET, "in/"))
    twice = once.restrict(Prefix(BUCKET, "in/deep/"), write=False, delete=False)
    project = filled.through(AccessGrant.parse(twice.serialize()))
    assert project.download(BUCKET, "in/deep/b").read() == b"in/deep/b"
    with pytest.raises(PermissionDenied):
        project.upload(BUCKET, "in/deep/c", b"x")
    with pytest.raises(PermissionDenied):
        once.restrict(Prefix(BUCKET, "out/"))
    with pytest.raises(InvalidInput, match="end in '/'"):
        Prefix(BUCKET, "in")
    with pytest.raises(InvalidInput, match="needs a root key"):
        EncryptionAccess()


def test_several_prefixes(filled: World) -> None:
    """One grant may reach a folder and a whole bucket, and copy between them."""
    grant = filled.project.access.restrict(Prefix(BUCKET, "in/"), Prefix(OTHER))
    project = filled.through(grant)
    project.copy_object(BUCKET, "in/a", OTHER, "from/in")
    assert filled.project.download(OTHER, "from/in").read() == b"in/a"


def test_passphrases(tmp_path: Path) -> None:
    """A store made with a passphrase opens with it alone; nothing on the disk gives it away."""
    folder = tmp_path / "store"
    with open_project(folder, passphrase="correct horse") as project:
        project.create_bucket(BUCKET)
        project.upload(BUCKET, "k", b"secret", metadata={"m": "1"})
        root = project.access.encryption.root
        assert root is not None
    with open_project(folder, passphrase="correct horse") as again:
        assert again.download(BUCKET, "k").read() == b"secret"
        assert again.access.encryption.root == root
    with pytest.raises(PermissionDenied, match="not that of this store"):
        open_project(folder, passphrase="wrong")
    with pytest.raises(PermissionDenied, match="made with a passphrase"):
        open_project(folder)
    with pytest.raises(InvalidInput, match="empty"):
        open_project(tmp_path / "other", passphrase="")
    assert not (tmp_path / "other").exists()
    secret = root.reveal()
    forms = (secret, secret.hex().encode(), base64.b64encode(secret), b"correct horse")
    for file in folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not any(form in content for form in forms), file


def test_secrets_are_for_the_owner_alone(tmp_path: Path) -> None:
    """Whatever the umask: grant, description and the database with the keys' secrets."""
    before = os.umask(0)
    try:
        with open_project(tmp_path / "store") as project:
            project.create_bucket(BUCKET)
            files = [file for file in (tmp_path / "store").iterdir() if file.is_file()]
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}
    finally:
        os.umask(before)
    modes.pop(".lock")
    assert {"access.json", "store.json", "meta.db", "meta.db-wal"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_a_needless_passphrase_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store without a passphrase does not silently ignore one."""
    open_project(tmp_path / "store").close()
    with pytest.raises(PermissionDenied, match="without a passphrase"):
        open_project(tmp_path / "store", passphrase="x")
    monkeypatch.setenv("CALQUE_PASSPHRASE", "of another store")
    open_project(tmp_path / "store").close()


def test_the_passphrase_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CALQUE_PASSPHRASE makes and opens a store as the argument does."""
    monkeypatch.setenv("CALQUE_PASSPHRASE", "from outside")
    open_project(tmp_path / "store").close()
    monkeypatch.delenv("CALQUE_PASSPHRASE")
    with pytest.raises(PermissionDenied, match="made with a passphrase"):
        open_project(tmp_path / "store")
    open_project(tmp_path / "store", passphrase="from outside").close()
    with pytest.raises(NotFound, match="no store"):
        open_project(tmp_path / "elsewhere", create=False)


def test_the_satellite_knows_nothing_plain(filled: World) -> None:
    """No plain key, name of a folder, byte or metadata stands in the database or on a node."""
    filled.project.upload(
        BUCKET,
        "telltale-name/telltale-file",
        b"telltale-bytes" * 200,
        metadata={"telltale-field": "telltale-value"},
    )
    root = filled.project.access.encryption.root
    assert root is not None
    found = [
        file
        for file in filled.store.folder.rglob("*")
        if file.is_file()
        and file.name != "access.json"
        and (b"telltale" in file.read_bytes() or root.reveal() in file.read_bytes())
    ]
    assert found == []
    assert oct((filled.store.folder / "access.json").stat().st_mode & 0o777) == "0o600"


def test_a_piece_under_another_name_does_not_decrypt(filled: World) -> None:
    """Wrapped keys belong to a name: rows moved to another name by the satellite are noticed."""
    whole = filled.project.access.encryption
    a, c = whole.locate(BUCKET, "in/a"), whole.locate(BUCKET, "out/c")
    assert a.content_key != c.content_key
    assert a.metadata_key != a.content_key
    with pytest.raises(IntegrityError):
        open_metadata(2, c, seal_metadata(2, a, {"x": "y"}))


def test_a_grant_with_an_address_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``calque://`` and the file system of fsspec find the store by it; without one it is asked."""
    monkeypatch.delenv("CALQUE_PROJECT", raising=False)
    with closing(EmbeddedStore.create(tmp_path / "store")) as store, serve_store(store) as served:
        with open_project(tmp_path / "store") as project:
            project.create_bucket("photos")
            project.upload("photos", "a.jpg", b"light")
        line = replace(store.grant(), address=served.address).serialize()
        with Operator.from_uri("calque://photos", access=line) as op:
            assert op.read("a.jpg") == b"light"
        monkeypatch.setenv("CALQUE_ACCESS", line)
        with Operator.from_uri("calque://photos") as op:
            assert op.read("a.jpg") == b"light"
        fs = CalqueFileSystem(skip_instance_cache=True)
        assert fs.cat("photos/a.jpg") == b"light"
        fs.close()
        monkeypatch.setenv("CALQUE_ACCESS", store.grant().serialize())
        with pytest.raises(InvalidInput, match="needs to know the project"):
            Operator.from_uri("calque://photos")
