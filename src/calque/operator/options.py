"""Options of the verbs: frozen, keyword-only, checked when they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, TypedDict, get_args

from calque.errors import InvalidInput
from calque.values import ByteRange, Checksum
from calque.values.metadata import EMPTY

Verify = Literal["none", "size", "checksum"]
"""``size``: the size; ``checksum``: also full-object checksums where both sides have one."""

Streaming = bool | Literal["auto"]
"""Whether bytes pass through the client: never, always, or where there is no other way."""

_WRITE_TEXTS = (
    "content_type",
    "content_encoding",
    "content_language",
    "content_disposition",
    "cache_control",
    "expires",
    "storage_class",
)
_COPY_FLAGS = ("carry_metadata", "carry_tags", "carry_class", "stream_parts")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Which bytes of which version; ``if_match`` takes a :attr:`Metadata.pin`.

    The bytes of a whole object are held against every checksum that the reply brings and against
    ``checksums``, those that are known already; not so where ``verify`` is False. Who reads a part
    of it can ``learn`` the checksums of the whole that come with it.
    """

    range: ByteRange = field(default_factory=ByteRange)
    if_match: str | None = None
    version: str | None = None
    checksums: tuple[Checksum, ...] = ()
    verify: bool = True
    learn: Callable[[Checksum], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Conditions on the target and what is kept beside the bytes."""

    if_not_exists: bool = False
    if_match: str | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    expires: str | None = None
    user: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    tags: Mapping[str, str] | None = None
    storage_class: str | None = None
    size_hint: int | None = None
    concurrent: int = 4

    def __post_init__(self) -> None:
        for name in _WRITE_TEXTS:
            _text(name, getattr(self, name))
        _pairs("user", self.user)
        _pairs("tags", self.tags or EMPTY)
        _one_condition(self.if_not_exists, self.if_match)
        _positive("concurrent", self.concurrent)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    if_match: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOptions:
    """What a copy must hold (conditions, what is carried over) and how it runs.

    Policy on both sides of the multipart threshold: content headers, user metadata and tags are
    carried over unless told otherwise; storage class, encryption and access lists are the
    destination's own defaults unless ``carry_class`` asks for the source's class.
    """

    if_not_exists: bool = False
    if_match: str | None = None
    source_if_match: str | None = None
    source_version: str | None = None
    concurrent: int = 8
    chunk: int | None = None
    carry_metadata: bool = True
    carry_tags: bool = True
    carry_class: bool = False
    verify: Verify = "checksum"
    stream: Streaming = False
    """False: the services copy between themselves, or the copy is refused. True: every byte passes
    through the client. ``auto``: through the client where the services cannot copy between
    themselves, or cannot keep the condition while they do."""
    stream_parts: bool = False
    """Bytes that pass through the client go in parts, several at a time, each read and written by
    itself: such a copy can be resumed where the target keeps parts. Once resumed, the checksum of
    the whole is compared only where both services tell one of the same kind."""

    def __post_init__(self) -> None:
        for name in _COPY_FLAGS:
            _flag(name, getattr(self, name))
        if self.stream != "auto":
            _flag("stream", self.stream, "True, False or 'auto'")
        _condition("source_if_match", self.source_if_match)
        _condition("source_version", self.source_version)
        _one_condition(self.if_not_exists, self.if_match)
        _positive("concurrent", self.concurrent)
        if self.chunk is not None:
            _positive("chunk", self.chunk)
        if self.verify not in get_args(Verify):
            raise InvalidInput(
                f"verify cannot be {self.verify!r}", hint=f"One of {', '.join(get_args(Verify))}."
            )


class ReadConditions(TypedDict, total=False):
    """Conditions of a read besides ``if_match``: what it is not, and when it changed."""

    if_none_match: str | None
    if_modified_since: datetime | None
    if_unmodified_since: datetime | None


class ReadKeywords(ReadConditions, total=False):
    """The keywords of ``read`` and ``read_stream``: which bytes, of which object."""

    offset: int
    length: int | None
    if_match: str | None
    version: str | None


class WriteKeywords(TypedDict, total=False):
    """The keywords of ``write``: the fields of :class:`WriteOptions`."""

    if_not_exists: bool
    if_match: str | None
    content_type: str | None
    content_encoding: str | None
    content_language: str | None
    content_disposition: str | None
    cache_control: str | None
    expires: str | None
    user: Mapping[str, str]
    tags: Mapping[str, str] | None
    storage_class: str | None
    size_hint: int | None
    concurrent: int


class CopyKeywords(TypedDict, total=False):
    """The keywords of ``copy`` and ``copier``: the fields of :class:`CopyOptions`."""

    if_not_exists: bool
    if_match: str | None
    source_if_match: str | None
    source_version: str | None
    concurrent: int
    chunk: int | None
    carry_metadata: bool
    carry_tags: bool
    carry_class: bool
    verify: Verify
    stream: Streaming
    stream_parts: bool


def options_of(kind: type[Any], given: Mapping[str, Any]) -> Any:
    """Options made from keywords; one that does not exist is an error that lists those that do."""
    known = [each.name for each in fields(kind)]
    for name in given:
        if name not in known:
            raise InvalidInput(
                f"there is no option {name!r}", hint=f"Options: {', '.join(sorted(known))}."
            )
    return kind(**given)


def _one_condition(if_not_exists: bool, if_match: str | None) -> None:
    _flag("if_not_exists", if_not_exists)
    _condition("if_match", if_match)
    if if_not_exists and if_match is not None:
        raise InvalidInput("if_not_exists and if_match cannot both hold: choose one")


def _positive(name: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(f"{name} must be a whole number, not {value!r}")
    if value < 1:
        raise InvalidInput(f"{name} must be at least 1, not {value}")


def _flag(name: str, value: object, choices: str = "True or False") -> None:
    """A string is no flag: ``if_not_exists="false"`` must not mean yes."""
    if value is not True and value is not False:
        raise InvalidInput(f"{name} must be {choices}, not {value!r}")


def _text(name: str, value: str | None) -> None:
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {value!r}")


def _condition(name: str, value: str | None) -> None:
    """An empty text is no condition: it might hold for anything."""
    _text(name, value)
    if value == "":
        raise InvalidInput(f"{name} cannot be empty", hint="Leave it out to set no condition.")


def _pairs(name: str, value: Mapping[str, str]) -> None:
    for key, item in value.items():
        if not isinstance(key, str) or not isinstance(item, str):
            raise InvalidInput(f"{name} must map text to text, not {key!r} to {item!r}")
