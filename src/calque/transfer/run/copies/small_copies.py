"""Small objects of a tree: each read whole and written whole, on the thread that asks.

Files become durable by the batch, so what was made of one is told when its batch is on the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from calque.errors import CalqueError, IntegrityError
from calque.operator.drivers.stream import write_options
from calque.operator.layers import Bandwidth, ConcurrencyLimit
from calque.operator.layers.chain import Call
from calque.operator.options import CopyOptions, WriteOptions
from calque.operator.read import pinned_options, read_all
from calque.operator.service import AsideWriting, Attributed, Fetching, Linking, Service
from calque.transfer.model import Pair
from calque.transfer.plan.side import Side, is_marker
from calque.transfer.request.options import TreeOptions
from calque.transfer.run.copies.attributes import (
    FilesAsObjects,
    describe_link,
    wanted_attributes,
)
from calque.transfer.run.copies.content_types import guess_type
from calque.transfer.run.copies.durability import DurableBatch
from calque.transfer.run.copies.large_copies import CLIENT
from calque.transfer.run.copies.links import Links
from calque.values import ByteRange, Metadata
from calque.values.file_attributes import LINK_TYPE, USER_KEY, FileAttributes

Tell = Callable[[Pair, Metadata | CalqueError, str], None]
"""Gets what was made of a pair, or why it was not, and by which route."""

_HEADERS = (
    "content_type",
    "content_encoding",
    "content_language",
    "content_disposition",
    "cache_control",
    "expires",
)


class SmallCopies:
    """Copies objects of at most one part between two services. Safe between threads."""

    def __init__(
        self,
        source: Side,
        origin: Service,
        target: Side,
        options: TreeOptions,
        copying: CopyOptions,
        *,
        limit: ConcurrencyLimit,
        moved: Callable[[int], None],
        dropped: Callable[[str], None],
        bandwidth: Bandwidth | None,
    ) -> None:
        self._source = source
        self._origin = origin
        self._target = target
        self._options = options
        self._copying = copying
        self._limit = limit
        self._moved = moved
        self._dropped = dropped
        self._bandwidth = bandwidth
        self._batch = DurableBatch(options.fsync)
        self._links = Links(target, options)
        # Asked once: what a service supplies besides is found out by looking for all of it.
        self._aside = target.service if isinstance(target.service, AsideWriting) else None
        self._fetching = source.service if isinstance(source.service, Fetching) else None

    def copy(
        self,
        pair: Pair,
        source: Metadata,
        tell: Tell,
    ) -> None:
        """Read a source whole and write it whole; what was made is told when it is durable."""
        key, into = self._target.key(pair.target_path), self._target.service
        # One place among those of the tree, for reading and writing in turn.
        with self._limit.place(Call("copy", key)):
            found, data = self._read(source)
            if self._bandwidth is not None:
                self._bandwidth.take(len(data))
            if self._links.takes(found):
                wanted = wanted_attributes(self._source.service, found, self._options)
                made = self._links.make(key, found.path, data, wanted.mtime)
                tell(pair, made, CLIENT)
                return
            options = self._write_options(pair.path, found)
            aside = self._aside
            if aside is not None:
                local = self._source.is_local
                wanted = wanted_attributes(self._origin, found, self._options)
                file = aside.write_aside(
                    key, data, options, modified=wanted.mtime, mode=wanted.mode, sparse=local
                )
            else:
                made = into.write(key, (data,) if data else (), options)
        self._moved(len(data))
        if aside is not None:
            # Its row is written when the whole batch is on the disk.
            self._batch.add(file, len(data), self._ended(pair, wanted, tell))
        else:
            tell(pair, made, CLIENT)

    def check(self, pair: Pair, source: Metadata) -> None:
        """Raise what would keep the source from being written, as far as it can be known before."""
        key = self._target.key(pair.target_path)
        if self._links.takes(source):
            found, text = self._read(source)
            self._links.check(key, found.path, text)
        elif self._aside is not None and not is_marker(source):
            self._aside.check_place(key)

    def note_dropped(self, source: Metadata) -> None:
        """Count an object whose headers a target without any cannot keep, if it has some; a type
        that its name tells anyway is not lost."""
        told = {name for name in _HEADERS if getattr(source, name)}
        if source.content_type == guess_type(source.path):
            told.discard("content_type")
        if told or source.user.keys() - {USER_KEY}:
            self._dropped("content headers and user metadata")

    def flush(self) -> None:
        """See files through that wait for the sync of their batch."""
        self._batch.flush()

    def give_up(self) -> None:
        """Remove files that wait for that."""
        self._batch.give_up()

    def _ended(
        self,
        pair: Pair,
        wanted: FileAttributes,
        tell: Tell,
    ) -> Callable[[Metadata | CalqueError], None]:
        """What is told of a file when the batch is on the disk; owners are given to it then."""
        into = self._target.service

        def ended(made: Metadata | CalqueError) -> None:
            if isinstance(made, Metadata) and self._options.owner and isinstance(into, Attributed):
                try:
                    into.set_attributes(made.path, wanted)
                    made = into.stat(made.path)
                except CalqueError as error:
                    made = error
            tell(pair, made, CLIENT)

        return ended

    def _read(self, source: Metadata) -> tuple[Metadata, bytes]:
        service = self._source.service
        if source.content_type == LINK_TYPE and isinstance(service, Linking):
            return describe_link(source), service.read_link(source.path)
        options = pinned_options(service, source, ByteRange())
        if self._fetching is not None:
            carried = self._options.carry_tags and self._target.service.capability.user_metadata
            found, data = self._fetching.fetch(source.path, options, tags=carried)
            found = replace(found, path=source.path)
        else:
            # Headers are asked for only where the service has some.
            found = service.stat(source.path) if service.capability.user_metadata else source
            if isinstance(self._origin, FilesAsObjects):
                found = self._origin.describe(found)
            data = read_all(service, source.path, options)
        if len(data) != source.size:
            raise IntegrityError(
                f"{service.location(source.path)} gave {len(data)} of its {source.size} bytes"
            )
        return found, data

    def _write_options(self, path: str, source: Metadata) -> WriteOptions:
        options = write_options(source, self._copying)
        if not self._target.service.capability.user_metadata:
            self.note_dropped(source)
            return WriteOptions(if_not_exists=options.if_not_exists, size_hint=source.size)
        given = None if source.content_type == LINK_TYPE else self._options.content_type
        return options if given is None else replace(options, content_type=given)
