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
directory, else the one in the user's configuration folder. The words beside each key are what
``calque init`` writes above it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from calque.errors import ConfigInvalid

T = TypeVar("T")
NOTHING: Mapping[str, Any] = {}
SECRET_NAME = re.compile(
    r"secret|passw|passphrase|token|credential$|key|sas|signature|^sig$", re.IGNORECASE
)
"""Names of options whose values are not shown; ``credentials`` names a function and is none."""
Where = tuple[str, ...]
"""A setting by its names: ``("stages", "landing", "location")``."""

ServiceOptions = Annotated[Mapping[str, str], "Options of its service; never credentials."]


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

    url: Annotated[Secret | None, "A path or the URL of a database."] = None
    expire_days: Annotated[int, "Days after which a loaded file is forgotten."] = 64

    def __post_init__(self) -> None:
        if self.expire_days < 1:
            raise ConfigInvalid(f"[ledger] expire_days must be at least 1, not {self.expire_days}")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Where work runs. No master: a local session on this machine's cores."""

    master: Annotated[str | None, "The URL of a Spark master."] = None
    memory: Annotated[str, "Memory of the driver of a local session."] = "768m"
    settings: Annotated[Mapping[str, str], "Settings of Spark itself, by their names."] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class StageSettings:
    """A place where files arrive, and the options its service needs (never credentials)."""

    location: Annotated[str, "The URI or folder that files arrive in."]
    options: ServiceOptions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """A server with a name: ``NAME:bucket/key`` on the command line is ``location`` and the rest.

    ``options`` are those of its service, never credentials: a profile, a function that returns
    them, or ``CALQUE_REMOTES_NAME_OPTION`` in the environment give those.
    """

    location: Annotated[str, "The URI that the name stands for."]
    options: ServiceOptions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableSettings:
    """A table: where it is and what it is. ``catalog`` names an Iceberg catalog.

    ``options`` are those of its service, as for a stage (never credentials).
    """

    location: Annotated[str | None, "Its URI or folder; not needed with a catalog."] = None
    format: Annotated[str, "delta or iceberg."] = "delta"
    catalog: Annotated[str | None, "The [catalogs.NAME] that knows an Iceberg table."] = None
    identifier: Annotated[str | None, "Its name in the catalog, where that is another."] = None
    options: ServiceOptions = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.format not in {"delta", "iceberg"}:
            raise ConfigInvalid(f"a table's format is delta or iceberg, not {self.format!r}")


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """A calque store: a folder, or ``grpc://`` or ``grpcs://host:port`` with an access grant.

    ``ca`` is a PEM file of the authorities that ``grpcs://`` trusts, instead of the public ones.
    """

    location: Annotated[str, "Its folder, or grpc:// or grpcs:// and host:port."]
    access: Annotated[Secret | None, "The access grant, a secret."] = None
    ca: Annotated[str | None, "A PEM file of the authorities that grpcs:// trusts."] = None


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, merged and checked. ``source`` is the file that was read, if any."""

    tenant: Annotated[str, "Whose loads these are: each tenant has its own."] = "default"
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    stages: Mapping[str, StageSettings] = field(default_factory=dict)
    tables: Mapping[str, TableSettings] = field(default_factory=dict)
    stores: Mapping[str, StoreSettings] = field(default_factory=dict)
    remotes: Mapping[str, RemoteSettings] = field(default_factory=dict)
    catalogs: Annotated[
        Mapping[str, Mapping[str, str]], "Iceberg catalogs: properties as pyiceberg takes them."
    ] = field(default_factory=dict)
    formats: Annotated[
        Mapping[str, Mapping[str, object]],
        "Named file formats: `type` and the options of FILE_FORMAT.",
    ] = field(default_factory=dict)
    source: Path | None = None

    def __post_init__(self) -> None:
        # A blank or the end of a line that a file of variables left there would be another tenant,
        # to whom every file is new.
        if not self.tenant.isprintable() or self.tenant.strip() != self.tenant or not self.tenant:
            raise ConfigInvalid(
                "tenant must be a name with no blanks around it and no control characters"
            )


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
    for place, value in _from_environment(environ, data):
        _put(data, place, value)
    for name, value in flags.items():
        if value is not None:
            _put(data, tuple(name.split(".")), value)
    settings = _build(Settings, data, "")
    object.__setattr__(settings, "source", source)
    return settings


def find_origins(
    path: Path | None = None, *, environ: Mapping[str, str] = os.environ
) -> dict[Where, str]:
    """Where each value that is no default came from: the file, or a variable of the environment."""
    source = _find(path, environ)
    data = _read(source) if source else {}
    origins = dict.fromkeys(_leaves(data), str(source))
    names = environment_names(data).items()
    return origins | {where: name for name, where in names if environ.get(name)}


def environment_names(data: Mapping[str, Any] = NOTHING) -> dict[str, Where]:
    """``CALQUE_LEDGER_URL`` → ``ledger.url``: fixed sections, and stores that the file names."""
    names: dict[str, Where] = {"CALQUE_TENANT": ("tenant",)}
    for section, kind in (("ledger", LedgerSettings), ("spark", SparkSettings)):
        for item in fields(kind):
            names[f"CALQUE_{section}_{item.name}".upper()] = (section, item.name)
    stores = data.get("stores", {})
    for store in stores if isinstance(stores, Mapping) else ():
        names[f"CALQUE_STORES_{store}_ACCESS".upper()] = ("stores", store, "access")
    return names


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
    """A URL without its password, for messages; nor are secrets of its query told."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:  # no URL: whatever it is, it is not shown
        return "****"
    if password is not None:
        host = parts.netloc.rpartition("@")[2]
        parts = parts._replace(netloc=f"{parts.username or ''}:****@{host}")
    asked = parse_qsl(parts.query, keep_blank_values=True)
    if any(SECRET_NAME.search(name) for name, _ in asked):
        shown = [(name, "****" if SECRET_NAME.search(name) else quote(it)) for name, it in asked]
        parts = parts._replace(query="&".join(f"{name}={it}" for name, it in shown))
    return url if parts == urlsplit(url) else urlunsplit(parts)


def _find(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    named = path or (Path(environ["CALQUE_CONFIG"]) if environ.get("CALQUE_CONFIG") else None)
    if named is not None:
        if not _is_file(named):
            raise ConfigInvalid(
                f"there is no configuration file at {named}",
                hint="Name an existing file with --config or CALQUE_CONFIG, or leave both out.",
            )
        return named
    base = environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    places = (Path("calque.toml"), Path(base) / "calque" / "calque.toml")
    return next((place for place in places if _is_file(place)), None)


def _is_file(place: Path) -> bool:
    """False also where nobody may look: the home of another user, as sudo leaves it set."""
    return os.path.isfile(place)  # Path.is_file would raise PermissionError


def _read(source: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigInvalid(f"{source} cannot be read: {error}") from error


def _from_environment(
    environ: Mapping[str, str], data: Mapping[str, Any]
) -> list[tuple[Where, str | int]]:
    return [
        (where, _number(environ[name]) if where == ("ledger", "expire_days") else environ[name])
        for name, where in environment_names(data).items()
        if environ.get(name)
    ]


def _number(value: str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise ConfigInvalid(f"CALQUE_LEDGER_EXPIRE_DAYS must be a number, not {value!r}") from error


def _leaves(data: Mapping[str, Any], where: Where = ()) -> Iterator[Where]:
    for name, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*where, name))
        else:
            yield (*where, name)


def _put(data: Any, where: Where, value: Any) -> None:
    for name in where[:-1]:
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            return  # no table: told when the settings are built
    data[where[-1]] = value


def _build(kind: type[T], data: Mapping[str, Any], where: str) -> T:
    if not isinstance(data, Mapping):
        # Not its value: a URL with a password may stand where [ledger] should.
        raise ConfigInvalid(f"[{where}] must be a table, not {type(data).__name__}")
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
