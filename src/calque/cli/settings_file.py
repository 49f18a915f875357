"""Every key of ``calque.toml``, read off the settings, and the file that shows them all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from calque.config import Settings, environment_names

NAME = "NAME"
"""Stands in a key for the name that the user gives."""

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "ledger.url": ('url = "postgresql://loader@db/calque"',),
    "spark.master": ('master = "spark://cluster:7077"',),
    "spark.settings": ('settings = { "spark.executor.memory" = "4g" }',),
    "stages.NAME.location": ('location = "s3://landing/sales/"',),
    "stages.NAME.options": ('options = { region = "eu-central-1" }',),
    "tables.NAME.location": ('location = "s3://warehouse/sales/"',),
    "tables.NAME.catalog": ('catalog = "prod"',),
    "tables.NAME.identifier": ('identifier = "shop.sales"',),
    "tables.NAME.options": ('options = { endpoint_url = "https://s3.internal" }',),
    "stores.NAME.location": ('location = "grpcs://store.internal:7777"',),
    "stores.NAME.access": ('access = "the text that calque store access shows"',),
    "stores.NAME.ca": ('ca = "/etc/calque/authorities.pem"',),
    "remotes.NAME.location": ('location = "s3://"',),
    "remotes.NAME.options": ('options = { endpoint_url = "https://s3.backup.example" }',),
    "catalogs.NAME": ('type = "rest"', 'uri = "https://catalog.internal"'),
    "formats.NAME": ('type = "CSV"', 'field_delimiter = ";"', "skip_header = 1"),
}
"""What is shown of a key that has no default, or an empty one."""

NAMES: Mapping[str, str] = {
    "stages": "landing",
    "tables": '"warehouse.sales"',
    "stores": "archive",
    "remotes": "backup",
    "catalogs": "prod",
    "formats": "ours",
}


@dataclass(frozen=True, slots=True)
class Key:
    """One key: ``stages.NAME.location``; no ``default`` means that there is no value without it."""

    name: str
    meaning: str
    default: Any
    needed: bool

    @property
    def variable(self) -> str | None:
        """The variable of the environment that sets it, if there is one."""
        if self.name == f"stores.{NAME}.access":
            return f"CALQUE_STORES_{NAME}_ACCESS"
        if isinstance(self.default, Mapping):
            return None
        where = tuple(self.name.split("."))
        return next((each for each, its in environment_names().items() if its == where), None)


def list_keys(kind: type = Settings, above: str = "") -> Iterator[Key]:
    """Every key there is, in the order of the settings."""
    hints = get_type_hints(kind, include_extras=True)
    for item in fields(kind):
        name, hint = above + item.name, hints[item.name]
        if name == "source":
            continue
        meaning = get_args(hint)[1] if get_origin(hint) is Annotated else ""
        plain = _plain_type(hint)
        if is_dataclass(plain):
            yield from list_keys(plain, f"{name}.")  # type: ignore[arg-type]
        elif kind is Settings and get_origin(plain) is not None:
            inner = get_args(plain)[1]
            if is_dataclass(inner):
                yield from list_keys(inner, f"{name}.{NAME}.")  # type: ignore[arg-type]
            else:
                yield Key(f"{name}.{NAME}", meaning, {}, False)
        else:
            default = item.default if item.default is not MISSING else None
            if item.default_factory is not MISSING:
                default = item.default_factory()
            needed = item.default is MISSING and item.default_factory is MISSING
            yield Key(name, meaning, default, needed)


def render_settings_file() -> str:
    """A ``calque.toml`` that says everything and sets nothing: what it means is the defaults.

    Words stand after ``# ``, settings after a bare ``#``: taking that away switches them on.
    """
    lines = [
        "# Settings of calque. Everything works without this file; what is shown is the default,",
        "# or an example where there is none. Take away the # in front of a setting to change it.",
        "# The environment wins over this file, and flags win over both: see calque config.",
    ]
    section = ""
    for key in list_keys():
        parts = key.name.split(".")
        # What follows a named section's first two names is a key of it, if anything does.
        here = ".".join(parts[:2] if NAME in parts else parts[:-1])
        if here != section:
            lines += ["", *_section_lines(here)]
            section = here
        elif not section:
            lines.append("")
        lines += _key_lines(key)
    return "\n".join(lines) + "\n"


def _section_lines(section: str) -> list[str]:
    top = section.split(".")[0]
    kind = _plain_type(get_type_hints(Settings)[top])
    if not is_dataclass(kind):
        kind = get_args(kind)[1]
    words = (kind.__doc__ or "").split("\n")[0].replace("``", "`") if is_dataclass(kind) else ""
    header = f"[{section}]" if NAME not in section else f"#[{top}.{NAMES[top]}]"
    return [f"# {words}", header] if words else [header]


def _key_lines(key: Key) -> list[str]:
    about = [key.meaning]
    if key.needed:
        about.append("Needed.")
    if key.variable:
        about.append(f"{key.variable} in the environment.")
    shown = EXAMPLES.get(key.name)
    if shown is None:
        shown = (f"{key.name.rpartition('.')[2]} = {toml_value(key.default)}",)
    return [f"# {' '.join(about)}", *(f"#{line}" for line in shown)]


def toml_value(value: object) -> str:
    """A plain value as TOML spells it (a JSON string is one of TOML's)."""
    if isinstance(value, bool | str | int | float):
        return json.dumps(value, ensure_ascii=False)
    raise TypeError(f"a key whose default is {value!r} needs an example")


def _plain_type(hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        return _plain_type(get_args(hint)[0])
    if get_origin(hint) in (UnionType, Union):
        return next(arg for arg in get_args(hint) if arg is not type(None))
    return hint
