"""Objects below a prefix, in the order of their encrypted keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Integer,
    LargeBinary,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    or_,
    select,
    true,
    type_coerce,
)
from sqlalchemy.sql import and_

from calque.errors import InvalidInput
from calque.store.metabase.accounts.buckets import BUCKET_EXISTS, require_bucket
from calque.store.metabase.accounts.quota import CHANGES
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.object_keys import (
    ByDatabase,
    in_key_order,
    key_between,
    key_is,
    key_parameter,
)
from calque.store.metabase.model.records import PROJECT_ID_SIZE, ObjectRecord
from calque.store.metabase.model.schema import COMMITTED, PENDING, objects
from calque.store.metabase.streams.lookup import IS_COMMITTED

MAX_PAGE = 1000
# Longer than any key and made of the highest byte: the end of a bucket without a prefix.
END_OF_KEYS = b"\xff" * (verify.MAX_KEY_SIZE + 1)

_key = objects.c.object_key
_at_bucket = (
    objects.c.project_id == bindparam("project"),
    objects.c.bucket_name == bindparam("bucket"),
)
_in_bucket = (
    *_at_bucket,
    key_between(_key, key_parameter("first"), key_parameter("end")),
)
_visible = (
    IS_COMMITTED,
    or_(objects.c.expires_at.is_(None), objects.c.expires_at > bindparam("now")),
)


def select_committed(*columns: Any) -> Any:
    """A page of the objects that are to be seen from key ``first`` on, before ``end``."""
    return (
        select(*columns)
        .where(*_in_bucket, *_visible)
        .order_by(in_key_order(_key))
        .limit(bindparam("page"))
    )


COMMITTED_FROM = Statement("committed objects from a key", select_committed(objects))
PENDING_FROM = Statement(
    "pending objects from a key",
    select(objects)
    .where(
        *_in_bucket,
        objects.c.status == literal_column("1"),
        or_(
            _key > key_parameter("first"),
            and_(_key == key_parameter("first"), objects.c.version > bindparam("after_version")),
        ),
    )
    .order_by(in_key_order(_key), objects.c.version)
    .limit(bindparam("page")),
)


def _first_key(first: ColumnElement[bytes]) -> ColumnElement[Any]:
    """The lowest visible key that is not before ``first``."""
    return (
        select(_key)
        .where(*_at_bucket, key_between(_key, first, key_parameter("end")), *_visible)
        .order_by(in_key_order(_key))
        .limit(literal_column("1"))
        .scalar_subquery()
    )


def _concatenate(left: ColumnElement[bytes], right: ColumnElement[bytes]) -> ColumnElement[bytes]:
    return cast(left.op("||")(right), LargeBinary)  # SQLite joins bytes to text


def _next_start(key: ColumnElement[bytes]) -> ColumnElement[Any]:
    """Behind ``key``; where it lies in a folder below the prefix, behind all of the folder."""
    relative = func.substr(key, bindparam("prefix_size", type_=Integer) + 1, type_=LargeBinary)
    delimiter = bindparam("delimiter", type_=LargeBinary)
    cut = ByDatabase(
        sqlite=func.instr(relative, delimiter),
        postgres=func.position(delimiter.op("IN")(relative)),
    )
    before_it = bindparam("prefix_size", type_=Integer) + type_coerce(cut, Integer) - 1
    folder = func.substr(key, literal_column("1"), before_it, type_=LargeBinary)
    return case(
        (
            type_coerce(cut, Integer) > literal_column("0"),
            _concatenate(folder, bindparam("behind", type_=LargeBinary)),
        ),
        else_=_concatenate(key, bindparam("zero", type_=LargeBinary)),
    )


_hops = select(
    _first_key(key_parameter("first")).label("key"), literal_column("1").label("number")
).cte("hops", recursive=True)
_hops = _hops.union_all(
    select(_first_key(_next_start(_hops.c.key)), _hops.c.number + literal_column("1")).where(
        _hops.c.key.is_not(None), _hops.c.number < bindparam("page", type_=Integer)
    )
)
_of_hop = and_(*_at_bucket, key_is(_key, _hops.c.key), IS_COMMITTED)
# A plain join leaves it to PostgreSQL whether to go through the whole bucket instead.
_found = select(objects).where(_of_hop).limit(literal_column("1")).correlate(_hops).lateral("found")
LEVEL_FROM = Statement(
    "one level of committed objects from a key",
    sqlite=select(objects).select_from(_hops.join(objects, _of_hop)).order_by(_hops.c.number),
    postgres=select(_found).select_from(_hops.join(_found, true())).order_by(_hops.c.number),
)
"""Each object of a level, and of each folder below it the first one: the rest is jumped over."""


LAST_EXPIRY = Statement(
    "the last expiry that has passed",
    select(func.max(objects.c.expires_at)).where(
        objects.c.expires_at.is_not(None), objects.c.expires_at <= bindparam("now")
    ),
)
MARK_SIZE = 16


class ListItem(NamedTuple):
    """A key relative to the prefix, with its object; or a common prefix without one."""

    key: bytes
    object: ObjectRecord | None


class ObjectPage(NamedTuple):
    """Some items in order, and whether more follow.

    ``mark`` stands for the state of the project: as long as it is the same, so is every listing.
    """

    items: list[ListItem]
    more: bool
    mark: bytes
    unchanged: bool = False
    """Nothing was listed, since the mark is the one that the caller knows."""


@dataclass(frozen=True)
class ListObjects:
    """What lies below ``prefix``, after ``cursor`` (relative to the prefix)."""

    project_id: bytes
    bucket: str
    prefix: bytes = b""
    cursor: bytes | None = None
    limit: int = MAX_PAGE
    recursive: bool = True
    status: int = COMMITTED
    after_version: int = 0
    delimiter: bytes = b"/"
    known_mark: bytes = b""

    def __post_init__(self) -> None:
        verify.exactly(self.project_id, PROJECT_ID_SIZE, "project id")
        verify.bucket_name(self.bucket)
        if not 1 <= self.limit <= MAX_PAGE:
            raise InvalidInput(f"a page holds 1 to {MAX_PAGE} objects, not {self.limit}")
        if self.status not in (PENDING, COMMITTED):
            raise InvalidInput(f"object status {self.status} is unknown")
        if not self.delimiter:
            raise InvalidInput("delimiter is empty")
        if len(self.prefix) + len(self.cursor or b"") > 2 * verify.MAX_KEY_SIZE:
            raise InvalidInput("prefix or cursor is longer than a key can be")


def list_objects(database: Database, request: ListObjects) -> ObjectPage:
    """One page, in one snapshot; ``NotFound`` when the bucket does not exist."""

    def work(transaction: Transaction) -> ObjectPage:
        place = {"project_id": request.project_id, "bucket": request.bucket}
        bucket, changes, expiry = transaction.batch(
            [
                (BUCKET_EXISTS, place),
                (CHANGES, {"project": request.project_id}),
                (LAST_EXPIRY, {"now": transaction.now}),
            ]
        )
        require_bucket(bucket, request.bucket)
        mark = _mark_of(changes[0][0], expiry[0][0])
        if mark == request.known_mark:
            return ObjectPage([], False, mark, unchanged=True)
        items: list[ListItem] = []
        for item in _items(transaction, request):
            if len(items) == request.limit:
                return ObjectPage(items, True, mark)
            items.append(item)
        return ObjectPage(items, False, mark)

    return database.read(work)


def _mark_of(changes: int | None, last_expiry: int | None) -> bytes:
    """Every commit changes it, and so does every expiry; as a digest it tells no count."""
    return blake2b(f"{changes} {last_expiry}".encode(), digest_size=MARK_SIZE).digest()


def _items(transaction: Transaction, request: ListObjects) -> Iterator[ListItem]:
    """Objects and common prefixes; a prefix is jumped over, however much lies below it."""
    first, after_version = _start(request)
    end = after_prefix(request.prefix)
    while True:
        rows = _rows(transaction, request, first, end, after_version)
        jump = None
        for row in rows:
            record = ObjectRecord(*row)
            if jump is not None and record.object_key < jump:
                continue
            relative = record.object_key[len(request.prefix) :]
            cut = -1 if request.recursive else relative.find(request.delimiter)
            if cut < 0:
                jump = None
                yield ListItem(relative, record)
            else:
                shared = relative[: cut + len(request.delimiter)]
                jump = after_prefix(request.prefix + shared)
                yield ListItem(shared, None)
        if len(rows) <= request.limit:
            return
        last = ObjectRecord(*rows[-1])
        first, after_version = (jump, 0) if jump is not None else _behind(request, last)


def _start(request: ListObjects) -> tuple[bytes, int]:
    if request.cursor is None:
        return request.prefix, -1
    absolute = request.prefix + request.cursor
    if not request.recursive and request.cursor.endswith(request.delimiter):
        return after_prefix(absolute), -1
    if request.status == PENDING and request.after_version:
        return absolute, request.after_version
    return absolute + b"\0", -1


def _behind(request: ListObjects, last: ObjectRecord) -> tuple[bytes, int]:
    if request.status == PENDING:
        return last.object_key, last.version
    return last.object_key + b"\0", -1


def _rows(
    transaction: Transaction, request: ListObjects, first: bytes, end: bytes, after_version: int
) -> list[Any]:
    parameters: dict[str, object] = {
        "project": request.project_id,
        "bucket": request.bucket,
        "first": first,
        "end": end,
        "page": request.limit + 1,
    }
    if request.status == PENDING:
        parameters["after_version"] = after_version
        return transaction.rows(PENDING_FROM, parameters)
    parameters["now"] = transaction.now
    behind = after_prefix(request.delimiter)
    if request.recursive or behind == END_OF_KEYS:
        return transaction.rows(COMMITTED_FROM, parameters)
    parameters["prefix_size"] = len(request.prefix)
    parameters["delimiter"] = request.delimiter
    parameters["behind"] = behind
    parameters["zero"] = b"\0"
    return transaction.rows(LEVEL_FROM, parameters)


def after_prefix(prefix: bytes) -> bytes:
    """The first key that sorts behind every key with this prefix."""
    trimmed = prefix.rstrip(b"\xff")
    if not trimmed:
        return END_OF_KEYS
    return trimmed[:-1] + bytes([trimmed[-1] + 1])
