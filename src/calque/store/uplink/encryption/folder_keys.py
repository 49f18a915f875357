"""Names located by the keys of their folder, which are kept: most requests ask in few folders."""

from __future__ import annotations

from calque.errors import PermissionDenied
from calque.store.uplink.encryption.access import EncryptionAccess, Located
from calque.store.uplink.encryption.keys import SecretKey
from calque.store.uplink.encryption.paths import SEPARATOR, NameCipher, check_key, child_key

REMEMBERED = 1024
"""Folders."""


class FolderKeys:
    """What :meth:`EncryptionAccess.locate` gives, without deriving every key above it each time.

    Safe to share between threads; as long-lived, and as secret, as the access itself.
    """

    def __init__(self, access: EncryptionAccess) -> None:
        self._access = access
        self._known: dict[tuple[str, str], tuple[bytes, SecretKey, NameCipher]] = {}

    def locate(self, bucket: str, key: str) -> Located:
        """The object's encrypted name and keys; PermissionDenied outside the access."""
        check_key(key)
        end = key.rfind(SEPARATOR) + 1
        folder, name = key[:end], key[end:]
        known = self._known.get((bucket, folder))
        if known is None:
            try:
                known = self._learn(bucket, folder)
            except PermissionDenied:
                return self._access.locate(bucket, key)  # which names the key
        encrypted, folder_key, cipher = known
        return Located(bucket, key, encrypted + cipher.encrypt(name), child_key(folder_key, name))

    def _learn(self, bucket: str, folder: str) -> tuple[bytes, SecretKey, NameCipher]:
        path = self._access.below(bucket, folder)
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        known = self._known[bucket, folder] = path.encrypted, path.key, NameCipher(path.key)
        return known
