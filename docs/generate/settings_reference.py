"""The reference of ``calque.toml``, read off the settings."""

from __future__ import annotations

from calque.cli.settings_file import NAME, Key, list_keys, render_settings_file

HEAD = """\
# Every key of `calque.toml`

This page is made from the code. [Configuration](../configuration.md) tells where the file is looked
for and who wins. `NAME` is a name of your choice; one with a dot in it stands in quotes
(`[tables."warehouse.sales"]`).
"""

FILE = """\
## The file that `calque init` writes

It says everything and sets nothing: take away the `#` in front of a setting to change it.
"""


def render_settings() -> str:
    """The page, in Markdown: a table for each section, then the file with all of them."""
    parts = [HEAD]
    sections: dict[str, list[Key]] = {}
    for key in list_keys():
        sections.setdefault(section_of(key), []).append(key)
    for name, keys in sections.items():
        rows = ["| key | default | environment | what it is |", "|---|---|---|---|"]
        parts += [f"## {f'`[{name}]`' if name else 'Top of the file'}"]
        parts += ["\n".join(rows + [_row(key) for key in keys])]
    return "\n\n".join([*parts, FILE, f"```toml\n{render_settings_file()}```"]) + "\n"


def section_of(key: Key) -> str:
    """``[ledger]``, ``[stages.NAME]``; nothing for keys at the top of the file."""
    parts = key.name.split(".")
    return ".".join(parts[:2] if NAME in parts else parts[:-1])


def _row(key: Key) -> str:
    default = "needed" if key.needed else "none"
    if not key.needed and key.default not in (None, {}):
        default = f"`{key.default}`"
    variable = f"`{key.variable}`" if key.variable else ""
    return f"| `{key.name}` | {default} | {variable} | {key.meaning} |"
