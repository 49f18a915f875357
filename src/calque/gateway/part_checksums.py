"""Do the checksums of parts give that of their object?

Rows cannot tell: what a part and an object are known by is sealed with keys that only clients have.
So this looks through the eyes of one of them, at every object that was uploaded in parts. No bytes
are read.
"""

from __future__ import annotations

from collections.abc import Iterator

from calque.errors import IntegrityError, NotFound
from calque.gateway.body import checksums
from calque.gateway.content import checksum_of
from calque.gateway.verbs.uploads.upload import PartNote
from calque.store.metabase.fsck import Finding
from calque.store.project import Project
from calque.store.uplink.objects import ObjectInfo

DIFFERENT = "checksum of an object and of its parts"
UNREADABLE = "notes of parts that cannot be read"


def check_checksums(project: Project) -> Iterator[Finding]:
    """What does not fit, among the objects that ``project`` can read."""
    for bucket in project.list_buckets():
        for info in project.list_objects(bucket.name, recursive=True, with_metadata=True):
            if isinstance(info, ObjectInfo):
                yield from _check_object(project, info)


def _check_object(project: Project, info: ObjectInfo) -> Iterator[Finding]:
    try:
        fits = _fits(project, info)
        # Another object may have taken its place since it was listed.
        if fits or project.stat(info.bucket, info.key).etag != info.etag:
            return
        yield Finding(DIFFERENT, f"{info.bucket}/{info.key}")
    except NotFound:
        return
    except IntegrityError:
        yield Finding(UNREADABLE, f"{info.bucket}/{info.key}")


def _fits(project: Project, info: ObjectInfo) -> bool:
    """Whether the parts give the checksum, as far as each has one of that algorithm."""
    whole = checksum_of(info)
    parts = project.list_parts(info.bucket, info.key) if whole else []
    if whole is None or not parts:
        return True
    noted = [(PartNote.of(part).checksums.get(whole.algorithm), part.size) for part in parts]
    known = [(value, size) for value, size in noted if value is not None]
    if len(known) < len(parts):  # a part that was copied has none: nobody read it
        return True
    return checksums.combine(whole.algorithm, whole.kind, known) == whole
