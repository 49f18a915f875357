"""Globs of a location or a PATTERN: which part is one, and the regular expression it stands for."""

from __future__ import annotations

import re
from fnmatch import translate

_WILDCARD = re.compile(r"\[[*?\[{]\]|[*?\[{]")
"""One that stands alone in brackets, ``[*]``, is the character itself."""


def literal(location: str) -> str:
    """The glob that means this very name."""
    return re.sub(r"[*?\[{]", r"[\g<0>]", location)


def _unescape(location: str) -> str:
    return re.sub(r"\[([*?\[{])\]", r"\1", location)


def split_glob(location: str) -> tuple[str, str | None]:
    """A location up to its last folder without wildcards, and the rest as a glob."""
    found = next((one for one in _WILDCARD.finditer(location) if len(one[0]) == 1), None)
    if found is None:
        return _unescape(location), None
    base, slash, _ = location[: found.start()].rpartition("/")
    return (_unescape(base) + slash if slash else "./"), location[len(base) + len(slash) :]


def glob_regex(glob: str) -> str:
    """``*`` and ``?`` stay within a folder, ``**`` crosses folders, ``{a,b}`` are choices."""
    out, index = "", 0
    while index < len(glob):
        char = glob[index]
        if glob.startswith("**/", index):
            out, index = out + "(?:.*/)?", index + 3
        elif glob.startswith("**", index):
            out, index = out + ".*", index + 2
        elif char == "{" and "}" in glob[index:]:
            end = glob.index("}", index)
            choices = glob[index + 1 : end].split(",")
            out += "(?:" + "|".join(glob_regex(choice) for choice in choices) + ")"
            index = end + 1
        elif char == "[" and "]" in glob[index + 2 :]:
            end = glob.index("]", index + 2)
            out += translate(glob[index : end + 1]).removeprefix("(?s:").removesuffix(r")\Z")
            index = end + 1
        else:
            out += {"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char))
            index += 1
    return out
