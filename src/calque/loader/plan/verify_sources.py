"""Prepare, first half: is every source still the one that was claimed?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from calque.errors import CalqueError, NotFound
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.stage import Stage

TOGETHER = 32


def find_moved_sources(stage: Stage, files: Iterable[StagedFile]) -> dict[str, str]:
    """Files that are no longer what was claimed, with the reason.

    Where the service has etags and reads are pinned to them, the bytes read were the claimed ones
    whatever happened since, so nothing needs to be asked again. Elsewhere (a file system) a file
    can change under an open reader, so every file is looked at once more.
    """
    operator = stage.operator
    pinned = operator.capability.read_with_if_match
    asked = [file for file in files if not (pinned and file.identity.etag is not None)]

    def look(file: StagedFile) -> tuple[str, str | None]:
        try:
            found = operator.stat(stage.path_of(file))
        except NotFound:
            return file.location, "it was removed while it was being loaded"
        except CalqueError as error:
            return file.location, f"it cannot be checked again: {error.message}"
        same = found.size == file.identity.size and found.pin == file.identity.pin
        if same and found.last_modified == file.identity.last_modified:
            return file.location, None
        return file.location, "it changed while it was being loaded"

    def look_at(some: Sequence[StagedFile]) -> list[tuple[str, str | None]]:
        return [look(file) for file in some]

    # Several files to a call: a look at a local file is quicker than handing it to a thread.
    calls = [asked[start : start + TOGETHER] for start in range(0, len(asked), TOGETHER)]
    with ThreadPoolExecutor(8, thread_name_prefix="calque-verify") as pool:
        looks = chain.from_iterable(pool.map(look_at, calls))
        return {place: reason for place, reason in looks if reason is not None}
