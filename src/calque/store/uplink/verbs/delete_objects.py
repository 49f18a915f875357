"""Delete the objects at many keys of a bucket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from calque.errors import CalqueError, RateLimited, TimedOut, Unavailable, Unexpected
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.status import kind_named
from calque.store.uplink.session import Session
from calque.store.uplink.verbs.delete_object import Deletion

_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class KeyDeleted:
    """What became of one key: whether there was an object, or why it is still there."""

    key: str
    deleted: bool
    error: CalqueError | None = None


def delete_objects(
    session: Session, bucket: str, keys: Iterable[str] | Mapping[str, str | None]
) -> list[KeyDeleted]:
    """Delete them, up to 1,000 in one transaction; an answer for each key, which counts once.

    A map names with each key the etag that must be there, or None. NotFound is for the bucket;
    all else that keeps a key is told with it, and no hindrance to the others.
    """
    wanted = keys if isinstance(keys, Mapping) else dict.fromkeys(keys)
    answers: dict[str, KeyDeleted] = {}
    deletes: list[Deletion] = []
    for key, etag in wanted.items():
        try:
            deletes.append(Deletion(session, bucket, key, etag))
        except CalqueError as error:
            answers[key] = KeyDeleted(key, False, error)
    for start in range(0, len(deletes), _AT_ONCE):
        some = deletes[start : start + _AT_ONCE]
        answers.update((each.key, each) for each in _delete(session, bucket, some))
    return [answers[key] for key in wanted]


def _delete(session: Session, bucket: str, deletes: Sequence[Deletion]) -> list[KeyDeleted]:
    request = pb.ObjectsDeleteRequest(
        header=session.header, bucket=bucket, items=[each.message() for each in deletes]
    )
    try:
        answers = session.metainfo.delete_objects(request).items
    except (RateLimited, TimedOut):
        raise
    except Unavailable:
        # They may be gone or not: each is looked for and deleted by the name of what is there.
        return [_delete_again(each) for each in deletes]
    return [
        KeyDeleted(each.key, answer.deleted, _error_of(answer))
        for each, answer in zip(deletes, answers, strict=True)
    ]


def _delete_again(deletion: Deletion) -> KeyDeleted:
    try:
        return KeyDeleted(deletion.key, deletion.repeat())
    except CalqueError as error:
        return KeyDeleted(deletion.key, False, error)


def _error_of(answer: pb.ObjectDeleteAnswer) -> CalqueError | None:
    if not answer.error_kind:
        return None
    return (kind_named(answer.error_kind) or Unexpected)(answer.error_message)
