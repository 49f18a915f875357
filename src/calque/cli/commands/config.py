"""``calque config``: the settings in force, and where each came from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import typer

from calque.cli.flags.settings_flags import Config
from calque.cli.output import JsonFlag, as_json, say, table
from calque.config import (
    SECRET_NAME,
    Secret,
    Where,
    environment_names,
    find_origins,
    load_settings,
    mask_url,
)

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

SHOWN = {"CALQUE_CONFIG", "CALQUE_PROJECT", "CALQUE_CA"}
"""Variables beside the settings that hold no secret; the values of others are stars."""


@app.command()
def config(config: Config = None, json: JsonFlag = False) -> None:
    """Show every setting in force and where it came from: the file, the environment, a default.

    Secrets are masked. Variables of calque's that are set and no key of the file stand at the end.

    calque config

    calque config --config ./calque.toml --json
    """
    settings = load_settings(config)
    origins = find_origins(config)
    rows = [
        {"name": _spell(where), "value": value, "from": origins.get(where, "default")}
        for where, value in _values_of(settings)
        if where != ("source",)
    ]
    rows += _other_variables(set(environment_names()) | set(origins.values()))
    if json:
        source = settings.source
        as_json({"file": None if source is None else str(source), "settings": rows})
        return
    say(f"file: {settings.source or 'none; calque init writes one'}")
    table(["name", "value", "from"], [list(row.values()) for row in rows])


def _values_of(value: Any, where: Where = ()) -> Iterator[tuple[Where, object]]:
    """The leaves of the settings, masked; a mapping without entries sets nothing."""
    if is_dataclass(value):
        for item in fields(value):
            yield from _values_of(getattr(value, item.name), (*where, item.name))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _values_of(inner, (*where, name))
    else:
        yield where, _mask(where[-1], value)


def _mask(name: str, value: object) -> object:
    if isinstance(value, Secret):
        # A ledger is known by its URL; what else is secret is secret as a whole.
        return mask_url(value.reveal()) if name == "url" else str(value)
    if isinstance(value, str):
        return "****" if SECRET_NAME.search(name) else mask_url(value)
    return value


def _spell(where: Where) -> str:
    """As the file would spell it: a name with a dot in quotes."""
    return ".".join(
        name if name.replace("-", "_").isidentifier() else f'"{name}"' for name in where
    )


def _other_variables(known: set[str]) -> list[dict[str, object]]:
    names = sorted(
        name
        for name, value in os.environ.items()
        if value and name.startswith("CALQUE_") and name not in known
    )
    return [
        {
            "name": name,
            "value": mask_url(os.environ[name]) if name in SHOWN else "****",
            "from": "environment",
        }
        for name in names
    ]
