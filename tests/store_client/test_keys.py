"""Keys: derived the same everywhere, shown nowhere."""

from __future__ import annotations

import copy
import pickle

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from calque.errors import IntegrityError, InvalidInput, Unsupported
from calque.store.uplink.encryption.access import EncryptionAccess
from calque.store.uplink.encryption.cipher import (
    WRAPPED_SIZE,
    CipherSuite,
    Sealed,
    aead,
    unwrap,
    wrap,
)
from calque.store.uplink.encryption.keys import SecretKey
from calque.store.uplink.encryption.segment_keys import (
    Position,
    SegmentKeyRewrap,
    new_segment_key,
    unwrap_segment_key,
    wrap_segment_key,
)

ROOT = SecretKey(bytes(range(32)))


def test_a_passphrase_gives_one_key_per_salt() -> None:
    """The same passphrase and salt always agree; another of either does not."""
    salt = b"0123456789abcdef"
    key = SecretKey.from_passphrase("correct horse", salt)
    assert key == SecretKey.from_passphrase("correct horse", salt)
    assert key != SecretKey.from_passphrase("correct horse ", salt)
    assert key != SecretKey.from_passphrase("correct horse", salt[::-1])


def test_bad_passphrases_and_salts_are_refused() -> None:
    """Empty passphrases, short salts and short keys are said to be so."""
    with pytest.raises(InvalidInput, match="empty"):
        SecretKey.from_passphrase("", b"0" * 16)
    with pytest.raises(InvalidInput, match="Unicode") as caught:
        SecretKey.from_passphrase("hush\udcff", b"0" * 16)
    assert caught.value.__cause__ is None  # it would quote the passphrase
    with pytest.raises(InvalidInput, match="salt"):
        SecretKey.from_passphrase("x", b"0" * 15)
    with pytest.raises(InvalidInput, match="31"):
        SecretKey(bytes(31))


@pytest.mark.parametrize("length", [16, 32, 64, 100])
def test_derivation_is_hkdf(length: int) -> None:
    """Our expansion agrees with the library's HKDF-Expand byte for byte."""
    expected = HKDFExpand(hashes.SHA256(), length, b"label").derive(ROOT.reveal())
    assert ROOT.expand(b"label", length) == expected


def test_keys_do_not_leak() -> None:
    """No repr, no pickle and no copy protocol shows the bytes of a key."""
    secret = ROOT.reveal()
    assert secret.hex() not in repr(ROOT)
    assert str(secret) not in repr(EncryptionAccess(root=ROOT))
    located = EncryptionAccess(root=ROOT).locate("bucket", "key")
    assert located.path_key.reveal().hex() not in repr(located)
    for attempt in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="not pickled"):
            attempt(ROOT)


@pytest.mark.parametrize("suite", list(CipherSuite))
def test_wrapped_keys_come_back(suite: CipherSuite) -> None:
    """A wrapped key has 48 bytes, a fresh nonce each time, and opens for its purpose alone."""
    key = new_segment_key()
    first, second = wrap(suite, ROOT, key, b"p"), wrap(suite, ROOT, key, b"p")
    assert len(first.ciphertext) == WRAPPED_SIZE
    assert first.nonce != second.nonce
    assert unwrap(suite, ROOT, first, b"p", what="it") == key
    with pytest.raises(IntegrityError, match="it cannot be decrypted"):
        unwrap(suite, ROOT, first, b"q", what="it")
    with pytest.raises(IntegrityError, match="nonce of 3 bytes"):
        unwrap(suite, ROOT, Sealed(b"abc", first.ciphertext), b"p", what="it")


def test_rewrapping_changes_the_wrapping_only() -> None:
    """A copy's key is the same key, under another name, with another nonce."""
    access = EncryptionAccess(root=ROOT)
    old, new = access.locate("a", "x"), access.locate("b", "y/z")
    position, key = Position(3, 1), new_segment_key()
    wrapped = wrap_segment_key(CipherSuite.AES_256_GCM, old, key, position)
    again = SegmentKeyRewrap(CipherSuite.AES_256_GCM, old, new).rewrap(wrapped, position)
    assert again.nonce != wrapped.nonce
    assert unwrap_segment_key(CipherSuite.AES_256_GCM, new, again, position) == key
    with pytest.raises(IntegrityError, match="segment 3:1 of a/x"):
        unwrap_segment_key(CipherSuite.AES_256_GCM, old, again, position)


def test_segments_cannot_change_places() -> None:
    """A wrapped key is bound to its position: a satellite cannot exchange two segments."""
    located = EncryptionAccess(root=ROOT).locate("a", "x")
    wrapped = wrap_segment_key(CipherSuite.AES_256_GCM, located, ROOT, Position(0, 1))
    with pytest.raises(IntegrityError):
        unwrap_segment_key(CipherSuite.AES_256_GCM, located, wrapped, Position(0, 2))


def test_unknown_suites_are_unsupported() -> None:
    """A cipher from the future asks for an update instead of failing somewhere below."""
    with pytest.raises(Unsupported, match="cipher suite 9"):
        aead(9, ROOT)
