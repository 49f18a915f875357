"""Copy or move everything below a prefix: prepared page by page, done in one transaction.

Names below a prefix are encrypted under its key, so all of them are encrypted anew, and the keys
of segments and metadata are wrapped anew. No content is read. What is prepared stays with the
satellite for a day: a client that was killed goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from calque.errors import AlreadyExists, InvalidInput, NotFound
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.keys import SecretKey
from calque.store.uplink.encryption.metadata import rewrap_metadata_key
from calque.store.uplink.encryption.paths import NameCipher, check_key, child_key, decrypt_path
from calque.store.uplink.session import Session
from calque.store.uplink.verbs.rewrap import rewrap_keys
from calque.values import MIB

_PAGE = 1000
_MOST_BYTES = 2 * MIB
"""Of the entries in one message; a satellite takes 8 MiB unless it is told otherwise."""

Progress = Callable[[int, int], None]
"""Told how many objects are prepared by now, and their bytes."""


@dataclass(frozen=True, slots=True)
class PrefixResult:
    """How many objects were copied or moved, and the id that repeats or resumes the operation."""

    objects: int
    operation: bytes


def copy_prefix(
    session: Session,
    bucket: str,
    prefix: str,
    new_bucket: str,
    new_prefix: str,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    resume: bytes | None = None,
) -> PrefixResult:
    """Copy everything below ``prefix``, all or nothing and visible at once.

    Prefixes are empty or end in ``/``; neither may lie below the other. At most 100,000 objects.
    AlreadyExists names the first that stands at a new name, unless ``overwrite``; NotFound where
    there is nothing to copy; FailedPrecondition where something below the prefix was written
    meanwhile. ``resume`` is the operation of an earlier try (:class:`PrefixMove`).
    """
    job = PrefixMove(session, bucket, prefix, new_bucket, new_prefix, overwrite=overwrite)
    return job.run(progress, resume)


def move_prefix(
    session: Session,
    bucket: str,
    prefix: str,
    new_bucket: str,
    new_prefix: str,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    resume: bytes | None = None,
) -> PrefixResult:
    """Move everything below ``prefix``, as :func:`copy_prefix` copies it.

    Contents, times, etags and copies of the objects stay as they are; only their names change.
    """
    job = PrefixMove(
        session, bucket, prefix, new_bucket, new_prefix, move=True, overwrite=overwrite
    )
    return job.run(progress, resume)


class PrefixMove:
    """A copy or move of a prefix that the caller drives: ``prepare`` until False, then ``finish``.

    ``operation`` is known after the first step; another process may go on with it. The target may
    be reached by another access to the same project, ``into``.
    """

    def __init__(
        self,
        session: Session,
        bucket: str,
        prefix: str,
        new_bucket: str,
        new_prefix: str,
        *,
        move: bool = False,
        overwrite: bool = False,
        into: Session | None = None,
    ) -> None:
        if not bucket or not new_bucket:
            raise InvalidInput("a bucket must be named")
        old = session.access.below(bucket, prefix)
        new = (into or session).access.below(new_bucket, new_prefix)
        self._session = session
        self._request = pb.PrefixBeginRequest(
            header=session.header,
            bucket=bucket,
            encrypted_prefix=old.encrypted,
            new_bucket=new_bucket,
            new_encrypted_prefix=new.encrypted,
            move=move,
            overwrite=overwrite,
            limit=min(_PAGE, session.limits.keys_per_request),
        )
        self._new_key = new.key
        self._names = _Names(bucket, new_bucket)
        self._names.root(prefix, old.key, new_prefix, new.key)
        self.objects = 0
        """Prepared so far."""
        self.bytes = 0
        """Of the objects that this process prepared."""
        self._is_finished = False

    @property
    def operation(self) -> bytes:
        """What a resume needs; empty before the first step."""
        return self._request.operation_id

    def resume(self, operation: bytes) -> None:
        """Go on with an operation that another process began."""
        self._request.operation_id = operation

    def prepare(self) -> bool:
        """Prepare one page; whether there is more to prepare."""
        page = self._session.metainfo.begin_prefix(self._request)
        self._request.operation_id = page.operation_id
        self.objects, self._is_finished = page.staged, page.finished
        if page.entries:
            for some in _in_messages(map(self._names.rewrap, page.entries)):
                self.objects = self._session.metainfo.stage_prefix(
                    pb.PrefixStageRequest(
                        header=self._session.header, operation_id=self.operation, entries=some
                    )
                ).staged
            self.bytes += sum(entry.plain_size for entry in page.entries)
            self._request.cursor = page.entries[-1].encrypted_object_key
        return page.more

    def finish(self) -> PrefixResult:
        """Do it, in one transaction."""
        if not self.objects and not self._is_finished:
            raise NotFound(
                f"there is nothing below {self._names.describe()}",
                hint="A prefix ends in '/'; objects have names below it.",
            )
        done = self._session.metainfo.finish_prefix(
            pb.PrefixFinishRequest(header=self._session.header, operation_id=self.operation)
        )
        if done.existing_key:
            name = self._names.new_prefix + decrypt_path(self._new_key, done.existing_key)
            raise AlreadyExists(
                f"{self._request.new_bucket}/{name} exists already, nothing was done",
                hint="Ask for it to be overwritten, or choose another prefix.",
            )
        return PrefixResult(done.objects, self.operation)

    def run(self, progress: Progress | None = None, resume: bytes | None = None) -> PrefixResult:
        """Every step."""
        if resume is not None:
            self.resume(resume)
        more = True
        while more:
            more = self.prepare()
            if progress is not None:
                progress(self.objects, self.bytes)
        return self.finish()


@dataclass(frozen=True, slots=True)
class _Folder:
    """A directory under both prefixes, with its ciphers, which are made once."""

    plain: str
    new_plain: str
    encrypted: bytes
    old_key: SecretKey
    new_key: SecretKey
    old_names: NameCipher
    new_names: NameCipher


class _Names:
    """Names below one prefix as they are below the other."""

    def __init__(self, bucket: str, new_bucket: str) -> None:
        self._bucket = bucket
        self._new_bucket = new_bucket
        self._folders: dict[bytes, _Folder] = {}
        self.new_prefix = ""

    def root(self, prefix: str, old: SecretKey, new_prefix: str, new: SecretKey) -> None:
        """Where the names begin."""
        self.new_prefix = new_prefix
        self._folders[b""] = _Folder(
            prefix, new_prefix, b"", old, new, NameCipher(old), NameCipher(new)
        )

    def describe(self) -> str:
        return f"{self._bucket}/{self._folders[b''].plain}"

    def rewrap(self, entry: pb.PrefixEntry) -> pb.PrefixEntry:
        """The entry as it will be: another name, and every key wrapped for it."""
        directory, slash, last = entry.encrypted_object_key.rpartition(b"/")
        folder = self._folder(directory + slash)
        name = folder.old_names.decrypt(last)
        encrypted = folder.encrypted + folder.new_names.encrypt(name)
        old = Located(self._bucket, folder.plain + name, b"", child_key(folder.old_key, name))
        new = Located(
            self._new_bucket, folder.new_plain + name, b"", child_key(folder.new_key, name)
        )
        check_key(new.key)
        suite = entry.cipher_suite
        metadata = rewrap_metadata_key(
            suite, old, new, entry.encrypted_metadata_key_nonce, entry.encrypted_metadata_key
        )
        return pb.PrefixEntry(
            encrypted_object_key=encrypted,
            stream_id=entry.stream_id,
            cipher_suite=suite,
            encrypted_metadata_key_nonce=metadata.nonce if metadata else b"",
            encrypted_metadata_key=metadata.ciphertext if metadata else b"",
            segment_keys=rewrap_keys(suite, old, new, entry.segment_keys),
            seen_metadata_key=entry.encrypted_metadata_key,
        )

    def _folder(self, encrypted: bytes) -> _Folder:
        """The directory of that old name; those on the way are kept, since names come in order."""
        found = self._folders.get(encrypted)
        if found is not None:
            return found
        parents = encrypted.split(b"/")[:-1]
        folder, way = self._folders[b""], b""
        for component in parents:
            way += component + b"/"
            folder = self._folders.get(way) or self._enter(folder, component, way)
        return folder

    def _enter(self, parent: _Folder, component: bytes, way: bytes) -> _Folder:
        name = parent.old_names.decrypt(component)
        old, new = child_key(parent.old_key, name), child_key(parent.new_key, name)
        entered = _Folder(
            f"{parent.plain}{name}/",
            f"{parent.new_plain}{name}/",
            parent.encrypted + parent.new_names.encrypt(name) + b"/",
            old,
            new,
            NameCipher(old),
            NameCipher(new),
        )
        self._folders[way] = entered
        return entered


def _in_messages(entries: Iterable[pb.PrefixEntry]) -> Iterator[list[pb.PrefixEntry]]:
    """As many as one message takes: a key may have many kilobytes when it is encrypted."""
    some: list[pb.PrefixEntry] = []
    total = 0
    for entry in entries:
        if some and total + entry.ByteSize() > _MOST_BYTES:
            yield some
            some, total = [], 0
        some.append(entry)
        total += entry.ByteSize()
    if some:
        yield some
