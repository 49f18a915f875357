"""Settings: ``calque.toml``, then the environment, then flags, merged in this one place.

Everything works without the file. Where it is there it gives names to large things::

    tenant = "acme"

    [ledger]
    url = "postgresql://loader@db/calque"       # CALQUE_LEDGER_URL
    expire_days = 64                            # CALQUE_LEDGER_EXPIRE_DAYS

    [spark]
    master = "spark://cluster:7077"             # CALQUE_SPARK_MASTER

    [stages.landing]
    location = "s3://landing/sales/"
    options = { region = "eu-central-1" }

    [tables."warehouse.sales"]
    location = "s3://warehouse/sales/"
    format = "delta"
    options = { endpoint_url = "https://s3.internal", credentials = "mycompany.vault:s3_keys" }

    [stores.archive]
    location = "grpcs://store.internal:7777"
    access = "…"                                # CALQUE_STORES_ARCHIVE_ACCESS

The file is the one of ``--config`` or ``CALQUE_CONFIG``, else ``calque.toml`` in the working
directory, else the one in the user's configuration folder.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit, urlunsplit

from calque.errors import ConfigInvalid

T = TypeVar("T")
NOTHING: Mapping[str, Any] = {}


class Secret:
    """A string that is shown as stars wherever it is printed; ``reveal`` gives it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret('****')"

    def __str__(self) -> str:
        return "****"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a secret is not pickled: name a credentials provider instead")


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """Where loads are remembered. No url: a SQLite file in the user's state folder."""

    url: Secret | None = None
    expire_days: int = 64

    def __post_init__(self) -> None:
        if self.expire_days < 1:
            raise ConfigInvalid(f"[ledger] expire_days must be at least 1, not {self.expire_days}")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Where work runs. No master: a local session on this machine's cores."""

    master: str | None = None
    memory: str = "768m"
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageSettings:
    """A place where files arrive, and the options its service needs (never credentials)."""

    location: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """A server with a name: ``NAME:bucket/key`` on the command line is ``location`` and the rest.

    ``options`` are those of its service, never credentials: a profile, a function that returns
    them, or ``CALQUE_REMOTES_NAME_OPTION`` in the environment give those.
    """

    location: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableSettings:
    """A table: where it is and what it is. ``catalog`` names an Iceberg catalog.

    ``options`` are those of its service, as for a stage (never credentials).
    """

    location: str | None = None
    format: str = "delta"
    catalog: str | None = None
    identifier: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.format not in {"delta", "iceberg"}:
            raise ConfigInvalid(f"a table's format is delta or iceberg, not {self.format!r}")


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """A calque store: a folder, or ``grpc://`` or ``grpcs://host:port`` with an access grant.

    ``ca`` is a PEM file of the authorities that ``grpcs://`` trusts, instead of the public ones.
    """

    location: str
    access: Secret | None = None
    ca: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, merged and checked. ``source`` is the file that was read, if any."""

    tenant: str = "default"
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    stages: Mapping[str, StageSettings] = field(default_factory=dict)
    tables: Mapping[str, TableSettings] = field(default_factory=dict)
    stores: Mapping[str, StoreSettings] = field(default_factory=dict)
    remotes: Mapping[str, RemoteSettings] = field(default_factory=dict)
    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    formats: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Named file formats: ``type`` and the options of FILE_FORMAT."""
    source: Path | None = None


def load_settings(
    path: Path | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] = NOTHING,
) -> Settings:
    """Read and merge: the file, over it the environment, over it flags (``{"ledger.url": …}``).

    Raises ConfigInvalid for a file that cannot be read, an unknown name or a wrong type; the
    message names the place and, where there is one, the name that was meant.
    """
    source = _find(path, environ)
    data = _read(source) if source else {}
    for where, value in (*_from_environment(environ, data), *flags.items()):
        if value is not None:
            _put(data, where.split("."), value)
    settings = _build(Settings, data, "")
    object.__setattr__(settings, "source", source)
    return settings


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where calque keeps what must outlive a command: the embedded ledger, checkpoints."""
    base = environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "calque"


def remote_secrets(
    remote: str, names: Iterable[str], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The secrets of a named remote: ``CALQUE_REMOTES_BACKUP_ACCESS_KEY_ID``, and so on."""
    prefix = f"CALQUE_REMOTES_{remote.replace('-', '_')}_".upper()
    found = {name: environ.get(prefix + name.upper()) for name in names}
    return {name: value for name, value in found.items() if value}


def mask_url(url: str) -> str:
    """A URL without its password, for messages."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:****@{host}"))


def _find(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    named = path or (Path(environ["CALQUE_CONFIG"]) if environ.get("CALQUE_CONFIG") else None)
    if named is not None:
        if not named.is_file():
            raise ConfigInvalid(
                f"there is no configuration file at {named}",
                hint="Name an existing file with --config or CALQUE_CONFIG, or leave both out.",
            )
        return named
    base = environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    places = (Path("calque.toml"), Path(base) / "calque" / "calque.toml")
    return next((place for place in places if place.is_file()), None)


def _read(source: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigInvalid(f"{source} cannot be read: {error}") from error


def _from_environment(
    environ: Mapping[str, str], data: Mapping[str, Any]
) -> list[tuple[str, str | int]]:
    """``CALQUE_LEDGER_URL`` → ``ledger.url``: fixed sections, and what the file has named."""
    names: dict[str, str] = {"CALQUE_TENANT": "tenant"}
    for section, kind in (("ledger", LedgerSettings), ("spark", SparkSettings)):
        for item in fields(kind):
            names[f"CALQUE_{section}_{item.name}".upper()] = f"{section}.{item.name}"
    for store in data.get("stores", {}):
        names[f"CALQUE_STORES_{store}_ACCESS".upper()] = f"stores.{store}.access"
    found = [(names[name], environ[name]) for name in names if environ.get(name)]
    return [
        (where, _number(value) if where == "ledger.expire_days" else value)
        for where, value in found
    ]


def _number(value: str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise ConfigInvalid(f"CALQUE_LEDGER_EXPIRE_DAYS must be a number, not {value!r}") from error


def _put(data: dict[str, Any], where: list[str], value: Any) -> None:
    for name in where[:-1]:
        data = data.setdefault(name, {})
    data[where[-1]] = value


def _build(kind: type[T], data: Mapping[str, Any], where: str) -> T:
    if not isinstance(data, Mapping):
        raise ConfigInvalid(f"[{where}] must be a table, not {data!r}")
    hints = get_type_hints(kind)
    known = [item.name for item in fields(kind) if item.name != "source"]  # type: ignore[arg-type]
    for name in data:
        if name not in known:
            raise ConfigInvalid(
                f"{_place(where, name)} is not a setting", hint=_nearest(name, known)
            )
    values = {
        name: _convert(hints[name], value, _place(where, name)) for name, value in data.items()
    }
    try:
        return kind(**values)
    except TypeError as error:
        raise ConfigInvalid(f"[{where}] is not complete: {error}") from error


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin = get_origin(hint)
    if origin in (UnionType, Union):
        return _convert(next(arg for arg in get_args(hint) if arg is not type(None)), value, where)
    if origin is not None:
        if not isinstance(value, Mapping):
            raise ConfigInvalid(f"{where} must be a table, not {value!r}")
        inner = get_args(hint)[1]
        return {key: _convert(inner, item, f"{where}.{key}") for key, item in value.items()}
    if hint is Secret and isinstance(value, str):
        return Secret(value)
    if is_dataclass(hint):
        return _build(hint, value, where)  # type: ignore[arg-type]
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ConfigInvalid(f"{where} must be {_kind(hint)}, not {type(value).__name__}")
    return value


def _place(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _nearest(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known here: {', '.join(known)}."


def _kind(hint: type) -> str:
    return {str: "a string", int: "a whole number", Secret: "a string"}.get(hint, hint.__name__)
