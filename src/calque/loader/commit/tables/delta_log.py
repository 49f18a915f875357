"""Entries of a Delta log, read by their names: which transaction identifiers came in which commit.

The library's own history numbers entries by counting them, and a commit that says nothing of itself
(the protocol allows it) is not counted; so versions are told by the names of the files here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from calque.errors import IntegrityError, NotFound
from calque.loader.run.writing.table_root import TableRoot

AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class AppTransaction:
    """An application's transaction identifier in one commit."""

    app_id: str
    number: int
    version: int


def read_commits(place: TableRoot, since: int, until: int) -> list[AppTransaction] | None:
    """Those of versions ``(since, until]`` in order; None where an entry was cleaned away."""
    versions = range(since + 1, until + 1)
    if not versions:
        return []
    try:
        if len(versions) == 1:
            return _read(place, until)
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="calque-log") as pool:
            return [one for some in pool.map(partial(_read, place), versions) for one in some]
    except NotFound:
        return None


def _read(place: TableRoot, version: int) -> list[AppTransaction]:
    body = place.operator.read(place.full(f"_delta_log/{version:020d}.json"))
    try:
        return list(_transactions(body, version))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IntegrityError(
            f"version {version} of the table's log cannot be read: {error}",
            hint="Look at the table with the tool that wrote it.",
        ) from error


def _transactions(body: bytes, version: int) -> Iterator[AppTransaction]:
    for line in body.splitlines():
        # A commit may add very many files: only what can be a transaction is parsed.
        if b'"txn"' not in line:
            continue
        found = json.loads(line).get("txn")
        if found is not None:
            yield AppTransaction(found["appId"], int(found["version"]), version)
