"""How the values of options are read: what a user may spell, and the value that it stands for.

A ValueError says what the value may be; whoever knows the option's name puts it before that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, get_args

from calque.loader.model.error_policy import ErrorMode, ErrorPolicy
from calque.loader.model.file_formats import BinaryFormat, Compression
from calque.loader.model.plan import ColumnMatch, MetadataColumn, MetadataKind
from calque.loader.request.request import Validation

REFUSED: Mapping[str, str] = {
    "TRUNCATECOLUMNS": "columns of text have no length here: nothing is ever cut off",
    "ENFORCE_LENGTH": "columns of text have no length here: nothing is ever cut off",
    "MULTI_LINE": "line ends within quotes always belong to their field",
    "MULTILINE": "line ends within quotes always belong to their field",
    "ESCAPE_UNENCLOSED_FIELD": "ESCAPE holds inside and outside of quotes: say the same there, or "
    "FIELD_OPTIONALLY_ENCLOSED_BY = NONE",
    "IGNORELEADINGWHITESPACE": "blanks are trimmed on both sides or on none",
    "IGNORETRAILINGWHITESPACE": "blanks are trimmed on both sides or on none",
    "MODE": "PERMISSIVE would load NULL in the place of what cannot be read",
    "TEXT": "a line as a row with the one column value is no format here; in the other dialects "
    "TEXT is tab-separated",
}
"""Options and values that other systems have and calque refuses, each with its reason."""


Convert = Callable[[Any], Any]


def boolean(value: Any) -> bool:
    """TRUE or FALSE, quoted or not."""
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word not in ("true", "false"):
        raise ValueError("it is TRUE or FALSE")
    return word == "true"


def number_in(told: str) -> int | float | str:
    """A number as it stands in a statement; text where it has an exponent, or no end."""
    if re.fullmatch(r"-?[0-9]{1,40}", told):
        return int(told)
    return float(told) if re.fullmatch(r"-?[0-9]{0,40}\.[0-9]{0,40}", told) else told


def number(value: Any) -> int:
    """A whole number, quoted or not."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    # Python's own reading takes 1_0 and digits of any script.
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", str(value).strip()):
        raise ValueError("it is a whole number")
    return int(value)


def seconds(value: Any) -> float:
    """A number of seconds, quoted or not; one that has no end is none."""
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError("it is a number of seconds")
    return found


def names(value: Any) -> tuple[str, ...]:
    """One name or a list of them."""
    values = value if isinstance(value, tuple) else (value,)
    return tuple(str(one) for one in values)


def text(value: Any) -> str:
    return str(value)


def character(value: Any) -> str | None:
    """A character or several; NONE means none; ``0x1F`` is the character of that code."""
    word = str(value)
    if word.upper() == "NONE" or word == "":
        return None
    if re.fullmatch(r"0x([0-9A-Fa-f]{2})+", word):
        return bytes.fromhex(word[2:]).decode("latin-1")
    return word


def delimiter(value: Any) -> str:
    found = character(value)
    if found is None:
        raise ValueError("a delimiter cannot be empty")
    return found


def record_delimiter(value: Any) -> str:
    return "auto" if str(value).upper() in ("AUTO", "NONE", "") else delimiter(value)


def strftime(value: Any) -> str | None:
    """AUTO, a strptime format, or the YYYY-MM-DD HH24:MI:SS spelling."""
    word = str(value)
    if word.upper() in ("AUTO", ""):
        return None
    if "%" in word:
        return word
    word = word.replace('"', "")  # "T" stands for itself
    if "MM" not in word and not re.search("[Hh]", word):
        word = word.replace("mm", "MM")  # without hours there are no minutes: dd/mm/yyyy
    for spelled, code in _DATE_WORDS:
        word = re.sub(spelled, code, word)
    unknown = re.search(r"[A-Za-z]{2,}", re.sub("%.", "%", word))
    if unknown:
        raise ValueError(f"{unknown[0]} is none of YYYY, MM, DD, HH24, HH12, AM, MI, SS, FF")
    return word


def time_of_day(value: Any) -> str | None:
    """As :func:`strftime`, of a time without a date or zone: those would be lost."""
    found = strftime(value)
    other = re.search(r"%[^HIMSfpTRr%]", found or "")
    if other:
        raise ValueError(f"{other[0]} is no part of a time of the day, such as HH24:MI:SS")
    return found


def nan_display(value: Any) -> str | None:
    """What stands for NaN in columns of floats."""
    word = str(value).strip()
    if not word:
        raise ValueError("it cannot be empty")
    return None if word.lower() == "nan" else word


_DATE_WORDS = (
    ("(?:YYYY|yyyy)", "%Y"),
    ("(?:MM(?!%))(?![a-z])", "%m"),
    ("(?:DD|dd)", "%d"),
    ("HH12", "%I"),
    ("(?:HH24|HH)", "%H"),
    ("[AP]M", "%p"),
    ("(?:MI|mm)", "%M"),
    ("(?:SS|ss)", "%S"),
    (r"(?:\.FF[0-9]?|\.S+)", ".%f"),
)


def compression(value: Any) -> str:
    word = str(value).lower()
    if word not in get_args(Compression):
        raise ValueError("it is AUTO, NONE, GZIP, ZSTD, BZ2 or XZ")
    return word


def on_error(value: Any) -> ErrorPolicy:
    """ABORT_STATEMENT, ABORT, ABORT_n, CONTINUE, SKIP_FILE, SKIP_FILE_n, SKIP_FILE_n%."""
    word = str(value).upper()
    if word in ("ABORT", "ABORT_STATEMENT"):
        return ErrorPolicy()
    if word == "CONTINUE":
        return ErrorPolicy(ErrorMode.CONTINUE)
    if word == "SKIP_FILE":
        return ErrorPolicy(ErrorMode.SKIP_FILE)
    if found := re.fullmatch(r"ABORT_(\d+)", word):
        return ErrorPolicy(ErrorMode.ABORT, int(found[1]))
    if found := re.fullmatch(r"SKIP_FILE_(\d+)", word):
        return ErrorPolicy(ErrorMode.SKIP_FILE, int(found[1]))
    if found := re.fullmatch(r"SKIP_FILE_(\d+(?:\.\d+)?)%", word):
        return ErrorPolicy(ErrorMode.SKIP_FILE, percent=float(found[1]))
    raise ValueError(
        "it is ABORT_STATEMENT, ABORT_n, CONTINUE, SKIP_FILE, SKIP_FILE_n or SKIP_FILE_n%"
    )


def column_match(value: Any) -> ColumnMatch:
    known: dict[str, ColumnMatch] = {
        "NONE": "position",
        "CASE_SENSITIVE": "name",
        "CASE_INSENSITIVE": "name_insensitive",
    }
    word = str(value).upper()
    if word not in known:
        raise ValueError("it is CASE_SENSITIVE, CASE_INSENSITIVE or NONE")
    return known[word]


def validation(value: Any) -> Validation:
    word = str(value).upper()
    if word in ("RETURN_ERRORS", "RETURN_ALL_ERRORS"):
        return Validation()
    if found := re.fullmatch(r"RETURN_(\d+)_ROWS", word):
        return Validation(int(found[1]))
    raise ValueError("it is RETURN_n_ROWS, RETURN_ERRORS or RETURN_ALL_ERRORS")


METADATA_NAMES: Mapping[str, MetadataKind] = {
    "METADATA$FILENAME": MetadataKind.FILE,
    "METADATA$FILE_ROW_NUMBER": MetadataKind.ROW_NUMBER,
    "METADATA$FILE_LAST_MODIFIED": MetadataKind.LAST_MODIFIED,
    "METADATA$FILE_CONTENT_KEY": MetadataKind.ETAG,
    "METADATA$START_SCAN_TIME": MetadataKind.LOAD_TIME,
    "METADATA$LOAD_ID": MetadataKind.LOAD_ID,
    "METADATA$FILE_SIZE": MetadataKind.SIZE,
    "_METADATA.FILE_PATH": MetadataKind.FILE,
    "_METADATA.FILE_NAME": MetadataKind.NAME,
    "_METADATA.FILE_SIZE": MetadataKind.SIZE,
    "_METADATA.FILE_MODIFICATION_TIME": MetadataKind.LAST_MODIFIED,
    "_METADATA.ROW_INDEX": MetadataKind.ROW_NUMBER,
}


def metadata_kind(name: str) -> MetadataKind:
    """``METADATA$FILENAME``, ``_metadata.file_path`` or our own ``file``."""
    found = METADATA_NAMES.get(name.upper())
    if found is not None:
        return found
    try:
        return MetadataKind(name.lower())
    except ValueError:
        raise ValueError(
            f"{name!r} is none of {', '.join(kind.value for kind in MetadataKind)}"
        ) from None


def metadata(value: Any) -> tuple[MetadataColumn, ...]:
    """``(column = METADATA$FILENAME, …)``."""
    if not isinstance(value, Mapping):
        raise ValueError("spell it (column = METADATA$FILENAME, …)")
    return tuple(MetadataColumn(name, metadata_kind(str(kind))) for name, kind in value.items())


def lower(value: Any) -> str:
    return str(value).lower()


def binary_format(value: Any) -> str:
    """``BINARY_FORMAT``: how bytes are spelled."""
    word = str(value).lower().replace("-", "")
    if word not in get_args(BinaryFormat):
        raise ValueError("it is UTF8, HEX or BASE64")
    return word


def only(*granted: str) -> Convert:
    """An option whose other values would have no effect here; :data:`REFUSED` says why."""

    def convert(value: Any) -> str:
        if str(value).upper() not in granted:
            raise ValueError(f"it can only be {' or '.join(granted)}")
        return str(value).upper()

    return convert


def empty_field(value: Any) -> bool:
    """``EMPTY_FIELD_AS``: NULL, or the empty STRING; columns have no defaults to fill in."""
    word = str(value).upper()
    if word not in ("NULL", "STRING"):
        raise ValueError("it is NULL or STRING")
    return word == "NULL"


def mode(value: Any) -> ErrorPolicy:
    """Databricks' ``mode``; PERMISSIVE would load NULL in the place of what cannot be read."""
    known = {"FAILFAST": ErrorPolicy(), "DROPMALFORMED": ErrorPolicy(ErrorMode.CONTINUE)}
    if str(value).upper() not in known:
        raise ValueError(f"it is FAILFAST or DROPMALFORMED; {REFUSED['MODE']}")
    return known[str(value).upper()]


def missing_field(value: Any) -> str:
    word = str(value).lower()
    if word not in ("null", "error"):
        raise ValueError("it is NULL or ERROR")
    return word
