"""Names: every one round-trips, equal prefixes stay equal, foreign keys see nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import IntegrityError, InvalidInput, PermissionDenied
from calque.store.uplink.encryption import folder_keys
from calque.store.uplink.encryption.access import EncryptionAccess, Prefix
from calque.store.uplink.encryption.folder_keys import FolderKeys
from calque.store.uplink.encryption.keys import SecretKey
from calque.store.uplink.encryption.paths import (
    bucket_key,
    check_key,
    decrypt_path,
    encrypt_path,
    encrypt_prefix,
)

BASE = SecretKey(bytes(range(32)))
text = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
slashed = st.lists(st.one_of(text, st.just(""), st.just("/"), st.just("//")), max_size=6).map(
    "/".join
)


@given(slashed)
def test_every_name_round_trips(name: str) -> None:
    """Empty components, slashes at both ends and any Unicode come back as they were."""
    assert decrypt_path(BASE, encrypt_path(BASE, name).encrypted) == name


@given(slashed, slashed)
def test_prefixes_stay_prefixes(folder: str, name: str) -> None:
    """What starts with ``folder/`` in plain starts with the same bytes encrypted."""
    prefix = encrypt_prefix(BASE, folder + "/")
    whole = encrypt_path(BASE, f"{folder}/{name}")
    assert whole.encrypted.startswith(prefix.encrypted)
    rest = whole.encrypted[len(prefix.encrypted) :]
    assert decrypt_path(prefix.key, rest) == name
    assert encrypt_path(prefix.key, name).key == whole.key


@given(slashed, slashed)
def test_different_names_differ(one: str, other: str) -> None:
    """Encryption is deterministic and loses nothing: names are equal if and only if bytes are."""
    same = encrypt_path(BASE, one).encrypted == encrypt_path(BASE, other).encrypted
    assert same == (one == other)


@given(slashed)
def test_as_many_slashes_as_before(name: str) -> None:
    """The satellite sees the shape of the tree: one separator for one, none inside a component."""
    encrypted = encrypt_path(BASE, name).encrypted
    assert encrypted.count(b"/") == name.count("/")
    assert all(encrypted.split(b"/"))


def test_equal_components_differ_below_different_parents() -> None:
    """The same name in two folders or two buckets tells nobody that it is the same."""
    one = encrypt_path(BASE, "a/x").encrypted.split(b"/")[1]
    two = encrypt_path(BASE, "b/x").encrypted.split(b"/")[1]
    assert one != two
    first, second = (encrypt_path(bucket_key(BASE, b), "x").encrypted for b in ("one", "two"))
    assert first != second


def test_a_name_under_another_key_is_refused() -> None:
    """A foreign or tampered name is an error that says so, never a wrong name."""
    encrypted = encrypt_path(BASE, "secret/name").encrypted
    with pytest.raises(IntegrityError, match="cannot be decrypted"):
        decrypt_path(SecretKey(bytes(32)), encrypted)
    with pytest.raises(IntegrityError):
        decrypt_path(BASE, encrypted[:-2] + b"AA")
    with pytest.raises(IntegrityError):
        decrypt_path(BASE, b"")
    with pytest.raises(IntegrityError):
        decrypt_path(BASE, b"!!!")


def test_bad_keys_are_refused() -> None:
    """Empty, too long and broken Unicode: said before anything is sent."""
    with pytest.raises(InvalidInput, match="empty"):
        check_key("")
    with pytest.raises(InvalidInput, match="1025"):
        check_key("é" * 512 + "x")
    check_key("é" * 512)
    with pytest.raises(InvalidInput, match="Unicode"):
        check_key("bad\ud800")
    with pytest.raises(InvalidInput, match="end in '/'"):
        encrypt_prefix(BASE, "folder")


@pytest.mark.parametrize("remembered", [1024, 1])
def test_keys_of_folders_that_are_kept(remembered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and keys are those of the access itself, also of a second name of a folder."""
    monkeypatch.setattr(folder_keys, "REMEMBERED", remembered)
    whole = EncryptionAccess(BASE)
    limited = whole.restrict([Prefix("box", "a/b/")])
    names = ["x", "a/x", "a/b/x", "a/b/y", "a/b/", "a//", "/", "ä/ö", "a/b/c/d", "a/x"]
    for access in (whole, limited):
        kept = FolderKeys(access)
        for bucket, name in [(each, name) for name in names for each in ("box", "other")]:
            if access is limited and not (bucket == "box" and name.startswith("a/b/")):
                with pytest.raises(PermissionDenied, match=f"{bucket}/{name}"):
                    kept.locate(bucket, name)
            else:
                assert kept.locate(bucket, name) == access.locate(bucket, name)
    with pytest.raises(InvalidInput):
        FolderKeys(whole).locate("box", "")
