"""Globs of a location or a PATTERN: which part is one, and the regular expression it stands for."""

from __future__ import annotations

import re
from fnmatch import translate

_WILDCARD = re.compile(r"[*?\[{]")


def split_glob(location: str) -> tuple[str, str | None]:
    """A location up to its last folder without wildcards, and the rest as a glob."""
    found = _WILDCARD.search(location)
    if found is None:
        return location, None
    base, slash, _ = location[: found.start()].rpartition("/")
    return (base + slash if slash else "./"), location[len(base) + len(slash) :]


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
