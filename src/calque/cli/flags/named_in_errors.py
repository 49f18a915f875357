"""Errors of a load in the words of the command line: a flag in the place of COPY INTO's option."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from calque.errors import CalqueError

FLAGS = {
    "ARCHIVE": "--archive",
    "ENABLE_SCHEMA_EVOLUTION": "--evolve",
    "FILES": "--file",
    "FILE_FORMAT": "--format",
    "FORCE": "--force",
    "INCLUDE_METADATA": "--metadata",
    "LABEL": "--label",
    "MATCH_BY_COLUMN_NAME": "--match-by",
    "MAX_FILES": "--max-files",
    "ON_CHANGED": "--on-changed",
    "ON_ERROR": "--on-error",
    "PARTITION_BY": "--partition-by",
    "PATTERN": "--pattern",
    "PURGE": "--purge",
    "RESCUE_COLUMN": "--rescue",
    "SIZE_LIMIT": "--size-limit",
    "VALIDATION_MODE": "--validate",
    "load_uncertain_files": "--load-uncertain",
    "on_changed": "--on-changed",
}

# Not within a name or a path, which may have any of these words in it.
_WORD = re.compile(rf"(?<![\w/.'\"-])({'|'.join(FLAGS)})(?![\w/'\"-]|\.\w)")
_SQL = re.compile(r"FILE_FORMAT = \(TYPE = \w+\) or ")
"""A hint that has both spellings."""


@contextmanager
def name_flags() -> Iterator[None]:
    """Let errors pass with the flags that the user knows in their words."""
    try:
        yield
    except CalqueError as error:
        error.message = in_flags(error.message)
        error.hint = None if error.hint is None else in_flags(error.hint)
        raise


def in_flags(text: str) -> str:
    """The text with the flag for every option of COPY INTO that has one."""
    return _WORD.sub(lambda found: FLAGS[found[1]], _SQL.sub("", text))
