"""The store as a file system of fsspec: ``calque://bucket/key`` in pandas, Polars, Dask, DuckDB.

Which store is meant is said as the Operator says it: the option ``project``, or CALQUE_PROJECT.
Folders are what keys have in common before a ``/``: they need not be made, and go with their last
object. A file that is written appears whole when it is closed, or not at all.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from threading import Lock
from types import TracebackType
from typing import Any
from urllib.parse import unquote

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from calque.errors import (
    AlreadyExists,
    CalqueError,
    InvalidInput,
    IsADirectory,
    IsSameFile,
    NotFound,
    Unsupported,
)
from calque.store.open_project import ACCESS, address_of_grant, open_project
from calque.store.project import Project
from calque.store.service.service import PROJECT_OF
from calque.store.uplink.objects import ObjectInfo, PrefixInfo
from calque.store.uplink.verbs.multipart import MultipartUpload
from calque.values import MIB

PROJECT = "CALQUE_PROJECT"
BLOCK = 8 * MIB
PARTS_OF_A_SIZE = 1000
"""After so many parts they double in size: 10,000 is the most that an upload may have."""

Info = dict[str, Any]


class CalqueFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The buckets of one project. Options: ``project``, ``access``, ``passphrase``, ``ca``."""

    protocol = "calque"
    root_marker = ""

    def __init__(
        self,
        project: str | None = None,
        access: str | None = None,
        passphrase: str | None = None,
        ca: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._where = project
        self._opening = {"access": access, "passphrase": passphrase, "ca": ca}
        self._project: Project | None = None
        self._process = os.getpid()
        self._lock = Lock()

    @property
    def project(self) -> Project:
        """The project, opened when it is first needed; in a forked process once more."""
        with self._lock:
            if self._project is None or self._process != os.getpid():
                self._project, self._process = self._open_project(), os.getpid()
            return self._project

    def _open_project(self) -> Project:
        where = self._where or os.environ.get(PROJECT) or address_of_grant(self._opening["access"])
        if not where:
            raise InvalidInput(
                "calque:// needs to know the project",
                hint=f"Set {PROJECT}, or give storage_options={{'project': FOLDER_OR_URL}}.",
            )
        opening: dict[str, Any] = dict(self._opening)
        opening["access"] = opening["access"] or os.environ.get(ACCESS) or None
        return open_project(where, create=False, **opening)

    def close(self) -> None:
        """Let go of the project; the next call opens it again."""
        with self._lock:
            project, self._project = self._project, None
        if project is not None and self._process == os.getpid():
            project.close()

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        text = os.fspath(path).removeprefix("calque://").strip("/")
        bucket, slash, key = text.partition("/")
        return bucket.partition(PROJECT_OF)[0] + slash + key

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        """A location of ours names its project beside the bucket."""
        bucket = os.fspath(path).removeprefix("calque://").partition("/")[0]
        named = unquote(bucket.partition(PROJECT_OF)[2])
        return {"project": named} if named else {}

    def info(self, path: str, **options: Any) -> Info:
        """What is known of an object, a folder or a bucket; else NotFound."""
        bucket, key = self._split(path)
        if not bucket:
            return _folder("")
        if not key:
            return _folder(bucket, self.project.stat_bucket(bucket).created)
        try:
            return _file(self.project.stat(bucket, key))
        except NotFound:
            if next(iter(self.project.list_objects(bucket, f"{key}/")), None) is None:
                raise
        return _folder(f"{bucket}/{key}")

    def exists(self, path: str, **options: Any) -> bool:
        """Whether it is there; where that cannot be known it is an error, never False."""
        try:
            self.info(path)
        except NotFound:
            return False
        return True

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        """The buckets, or what lies in a bucket or folder, by name; of an object itself."""
        bucket, key = self._split(path)
        if not bucket:
            found = [_folder(each.name, each.created) for each in self.project.list_buckets()]
        else:
            prefix = f"{key}/" if key else ""
            level = self.project.list_objects(bucket, prefix, recursive=False)
            # An empty object that only marks the folder is not in it.
            found = [_entry(each) for each in level if each.key != prefix]
            if not found:
                there = self.info(path)
                found = [] if there["type"] == "directory" else [there]
        return found if detail else [each["name"] for each in found]

    def created(self, path: str) -> datetime | None:
        """When an object was written, or a bucket made; folders have no time."""
        when: datetime | None = self.info(path)["created"]
        return when

    modified = created

    def ukey(self, path: str) -> str:
        """The name of these very contents."""
        return str(self.info(path).get("etag", path))

    checksum = ukey

    def mkdir(self, path: str, create_parents: bool = True, **options: Any) -> None:
        """Make a bucket; folders in a bucket need none, but the bucket must be there."""
        bucket, key = self._split(path)
        if key:
            self.project.stat_bucket(bucket)
        else:
            self.project.create_bucket(bucket)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        try:
            self.mkdir(path)
        except AlreadyExists:
            if not exist_ok:
                raise

    def rmdir(self, path: str) -> None:
        """Delete an empty bucket; a folder goes with its last object."""
        bucket, key = self._split(path)
        if not key:
            self.project.delete_bucket(bucket)
        elif self.ls(path):
            raise IsADirectory(f"calque://{bucket}/{key} is not empty")

    def rm_file(self, path: str) -> None:
        """Delete one object; NotFound where there is none."""
        bucket, key = self._split(path)
        if key and self.project.delete_object(bucket, key):
            return
        self.info(path)  # raises where nothing is there
        raise IsADirectory(
            f"calque://{bucket}/{key} is a folder",
            hint="Give recursive=True for all that is in it.",
        )

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Delete objects; ``recursive`` all below folders, many in a transaction. Buckets stay."""
        if not recursive:
            for each in self.expand_path(path):
                self.rm_file(each)
            return
        keys: dict[str, list[str]] = {}
        for each in self._files_below(path, maxdepth):
            bucket, key = self._split(each)
            keys.setdefault(bucket, []).append(key)
        for bucket, names in keys.items():
            for answer in self.project.delete_objects(bucket, names):
                if answer.error is not None:
                    raise answer.error

    def _files_below(self, path: Any, maxdepth: int | None) -> Iterator[str]:
        for each in self.expand_path(path):
            if not self._split(each)[0]:
                raise InvalidInput("all buckets at once are not deleted", hint="Name a bucket.")
            if self.isfile(each):
                yield each
            else:
                yield from self.find(each, maxdepth=maxdepth)

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        """Copy an object inside the store: one transaction, no byte is moved."""
        try:
            self.project.copy_object(*self._object_of(path1), *self._object_of(path2))
        except (NotFound, InvalidInput):
            if not self.isdir(path1):  # a folder has nothing of its own to copy
                raise

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **options: Any,
    ) -> None:
        """Move an object, or (``recursive``) a folder to a new name, in one transaction.

        Into a folder that is there, or several at once: copied, then deleted, as fsspec does it.
        """
        self._refuse_inside_itself(path1, path2)
        alone = isinstance(path1, str) and isinstance(path2, str) and "*" not in path1
        if alone and not str(path2).endswith("/") and not self.isdir(path2):
            source, target = self._split(path1), self._object_of(path2)
            if self.isfile(path1):
                self.project.move_object(*source, *target)
                return
            if recursive and maxdepth is None and source[1] and not self.exists(path2):
                self.project.move_prefix(source[0], f"{source[1]}/", target[0], f"{target[1]}/")
                return
        super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **options)

    def _refuse_inside_itself(self, sources: Any, targets: Any) -> None:
        """A folder copied into itself and then deleted would take its copy along."""
        below = [self._strip_protocol(targets)] if isinstance(targets, str) else targets
        for each in self.expand_path(sources):
            source = self._strip_protocol(each)
            for target in map(self._strip_protocol, below):
                if f"{target}/".startswith(f"{source}/"):
                    raise IsSameFile(f"calque://{source} cannot be moved into itself ({target})")

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> StoreFile:
        self._object_of(path)
        if mode not in {"rb", "wb", "xb"}:
            raise Unsupported(
                f"an object of the store cannot be opened with {mode!r}",
                hint="Objects are written whole: read it, and write it anew.",
            )
        return StoreFile(
            self,
            path,
            mode,
            block_size=block_size or BLOCK,
            autocommit=autocommit,
            cache_options=cache_options,
            **options,
        )

    def _split(self, path: str) -> tuple[str, str]:
        bucket, _, key = self._strip_protocol(path).partition("/")
        return bucket, key

    def _object_of(self, path: str) -> tuple[str, str]:
        bucket, key = self._split(path)
        if not bucket or not key:
            raise IsADirectory(f"calque://{bucket} names no object", hint="calque://bucket/key")
        return bucket, key


class StoreFile(AbstractBufferedFile):  # type: ignore[misc]
    """An object that is read, pinned to what was there at the start, or written as a whole.

    What fits into one block is written in one go, more as an upload in parts that nobody sees
    before the end. Left by an exception, or never closed, it is given up: the object stays as it
    was.
    """

    _upload: MultipartUpload | None = None
    _whole: bytes | None = None
    _part = 0

    def _fetch_range(self, start: int, end: int) -> bytes:
        bucket, key = self.fs._object_of(self.path)
        return b"".join(
            self.fs.project.download(
                bucket, key, offset=start, length=end - start, if_match=self.details["etag"]
            )
        )

    def _initiate_upload(self) -> None:
        """Not yet: most files are one block, and need no upload in parts."""

    def _upload_chunk(self, final: bool = False) -> bool:
        data = self.buffer.getvalue()
        try:
            if final and self._upload is None:
                self._whole = data
            elif data:
                self._send(data)
            if final and self.autocommit:
                self.commit()
        except BaseException:
            self.discard()
            raise
        return True

    def _send(self, data: bytes) -> None:
        if self._upload is None:
            self._upload = self.fs.project.begin_multipart(*self.fs._object_of(self.path))
        self._part += 1
        self._upload.upload_part(self._part, data)
        if self._part % PARTS_OF_A_SIZE == 0:
            self.blocksize *= 2

    def commit(self) -> None:
        """Put the object in place; with mode ``xb`` only where there is none."""
        new = self.mode == "xb"
        if self._upload is not None:
            self._upload.commit(if_not_exists=new)
            self._upload = None
        elif self._whole is not None:
            bucket, key = self.fs._object_of(self.path)
            self.fs.project.upload(bucket, key, self._whole, if_not_exists=new)
            self._whole = None

    def discard(self) -> None:
        """Give up what was written; the store sweeps what cannot be taken back now."""
        upload, self._upload, self._whole = self._upload, None, None
        if upload is not None:
            with suppress(CalqueError):
                upload.abort()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and self.mode != "rb":
            self.discard()
            self.closed = True
        self.close()

    def __del__(self) -> None:
        if not self.closed and self.mode != "rb":
            self.closed = True
            self.discard()
            warnings.warn(
                f"{self.path} was never closed and is not written", ResourceWarning, stacklevel=2
            )


def _entry(found: ObjectInfo | PrefixInfo) -> Info:
    if isinstance(found, PrefixInfo):
        return _folder(f"{found.bucket}/{found.key.rstrip('/')}")
    return _file(found)


def _file(found: ObjectInfo) -> Info:
    return {
        "name": f"{found.bucket}/{found.key}",
        "size": found.size,
        "type": "file",
        "etag": found.etag,
        "created": found.created,
        "mtime": found.created,
    }


def _folder(name: str, created: datetime | None = None) -> Info:
    return {"name": name, "size": 0, "type": "directory", "created": created}
