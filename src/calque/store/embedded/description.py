"""The two files that describe a store in a folder, and how they are read and written."""

from __future__ import annotations

import base64
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from calque.errors import FailedPrecondition, InvalidInput, PermissionDenied
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.pieces import PIECE_NAMES
from calque.store.uplink.encryption.cipher import CipherSuite, Sealed, seal, unseal
from calque.store.uplink.encryption.keys import SecretKey

T = TypeVar("T")

DATABASE = "meta.db"

_VERSION = 1
_CHECK = b"calque passphrase check"


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """A node by its id and address; a plain relative path lies in the store's folder."""

    id: bytes
    address: str
    placement: int = 0

    def address_in(self, folder: Path) -> str:
        """The Operator URI, wherever the folder is now."""
        if "://" in self.address or os.path.isabs(self.address):
            return self.address
        return str(folder / self.address)


def describe_root(root: str, folder: Path) -> str:
    """The address of a node whose root somebody named: a relative path begins where they are.

    What lies in the store's folder is kept relative to it: both move together.
    """
    if "://" in root:
        return root
    path = Path(os.path.abspath(root))
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


@dataclass(frozen=True, slots=True)
class Description:
    """``store.json``."""

    nodes: tuple[NodeDescription, ...]
    redundancy: Redundancy
    database: str | None = field(default=None, repr=False)
    """A URL, which may hold a password; None: SQLite in the folder."""
    identified: bool = False
    """Whether every node's root carries its identity."""
    piece_names: int = PIECE_NAMES
    """How its piece ids are derived (see ``nodes/pieces``)."""

    def require_known_names(self) -> None:
        """FailedPrecondition where every piece would seem to be missing."""
        if self.piece_names != PIECE_NAMES:
            raise FailedPrecondition(
                f"the pieces of this store are named by scheme {self.piece_names}, "
                f"calque uses {PIECE_NAMES}",
                hint="Download its objects with the calque that made it, and upload them anew.",
            )

    def database_in(self, folder: Path) -> str:
        return self.database or f"sqlite:///{folder / DATABASE}"

    def to_json(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "database": self.database,
            "redundancy": asdict(self.redundancy),
            "identified": self.identified,
            "piece_names": self.piece_names,
            "nodes": [
                {"id": each.id.hex(), "address": each.address, "placement": each.placement}
                for each in self.nodes
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Description:
        nodes = tuple(
            NodeDescription(bytes.fromhex(each["id"]), each["address"], each["placement"])
            for each in data["nodes"]
        )
        return cls(
            nodes,
            Redundancy(**data["redundancy"]),
            data["database"],
            data.get("identified") is True,
            # The first scheme had no name.
            int(data.get("piece_names", 1)),
        )


@dataclass(frozen=True, slots=True)
class Access:
    """``access.json``: an API key, and the root key or what tells a right passphrase."""

    api_key: bytes = field(repr=False)
    root: bytes | None = field(repr=False)
    salt: bytes
    check: Sealed

    @classmethod
    def make(cls, api_key: bytes, root: SecretKey, salt: bytes, *, keep_root: bool) -> Access:
        check = seal(CipherSuite.AES_256_GCM, root, b"", _CHECK)
        return cls(api_key, root.reveal() if keep_root else None, salt, check)

    def root_key(self, passphrase: str | None) -> SecretKey:
        """The root key; PermissionDenied for a missing, needless or wrong passphrase."""
        if self.root is not None:
            if passphrase is not None:
                raise PermissionDenied("this store was made without a passphrase: leave it out")
            return SecretKey(self.root)
        if passphrase is None:
            raise PermissionDenied(
                "this store was made with a passphrase: it is needed to open it",
                hint="Give passphrase=…, or set CALQUE_PASSPHRASE.",
            )
        return self._require_right(SecretKey.from_passphrase(passphrase, self.salt))

    def _require_right(self, root: SecretKey) -> SecretKey:
        try:
            unseal(CipherSuite.AES_256_GCM, root, self.check, _CHECK, what="the check")
        except Exception as error:
            raise PermissionDenied("the passphrase is not that of this store") from error
        return root

    def to_json(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "api_key": _to_base64(self.api_key),
            "root_key": _to_base64(self.root) if self.root is not None else None,
            "salt": _to_base64(self.salt),
            "check": [_to_base64(self.check.nonce), _to_base64(self.check.ciphertext)],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Access:
        root = data["root_key"]
        nonce, check = data["check"]
        return cls(
            _from_base64(data["api_key"]),
            _from_base64(root) if root is not None else None,
            _from_base64(data["salt"]),
            Sealed(_from_base64(nonce), _from_base64(check)),
        )


def read_json(file: Path, parse: Callable[[Mapping[str, Any]], T]) -> T:
    """What a description file says; InvalidInput when it is damaged or of another release."""
    try:
        data = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from error
    if not isinstance(data, dict) or "version" not in data:
        raise InvalidInput(f"{file} is no description of a store")
    if data["version"] != _VERSION:
        raise InvalidInput(
            f"{file} has version {data['version']}, calque reads {_VERSION}",
            hint="It was made by a newer calque: update.",
        )
    try:
        return parse(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # Not the error's own words: they may quote a key.
        raise InvalidInput(
            f"{file} is damaged: a part of it is missing or was changed",
            hint="Restore it from a backup; the objects themselves are not affected.",
        ) from error


def write_json(file: Path, data: Mapping[str, Any]) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    temporary = file.with_suffix(".new")
    temporary.unlink(missing_ok=True)  # a killed process left it, or a stranger: no mode of theirs
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as out:
        json.dump(data, out, indent=2)
        out.flush()
        os.fsync(out.fileno())
    # Only what is on the disk may take the name: after a power cut it is the old file or the new.
    os.replace(temporary, file)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """One process at a time makes a store in a folder; a killed one lets go by itself."""
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
