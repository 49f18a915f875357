"""Which module serves which scheme; nothing is imported before it is used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any, cast

from calque.errors import InvalidInput, MissingExtra, Unsupported
from calque.operator.layers.chain import Chain, Layer
from calque.operator.service import Bucket, Service
from calque.operator.uri import ServiceUri, scheme_of


@dataclass(frozen=True, slots=True)
class Entry:
    """The builder module of a service, and the extra that brings what it imports."""

    module: str
    extra: str | None = None


_SERVICES = "calque.operator.services"

REGISTRY: Mapping[str, Entry] = MappingProxyType(
    {
        "memory": Entry(f"{_SERVICES}.memory.builder"),
        "fs": Entry(f"{_SERVICES}.fs.builder"),
        "file": Entry(f"{_SERVICES}.fs.builder"),
        "s3": Entry(f"{_SERVICES}.s3.builder", "s3"),
        "gs": Entry(f"{_SERVICES}.gcs.builder", "gcs"),
        "gcs": Entry(f"{_SERVICES}.gcs.builder", "gcs"),
        "az": Entry(f"{_SERVICES}.azblob.builder", "azure"),
        "azblob": Entry(f"{_SERVICES}.azblob.builder", "azure"),
        "calque": Entry("calque.store.service.builder", "store"),
    }
)

CREDENTIALS = "credentials"
"""The option that names a provider: ``package.module:function``, which returns more options."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How a service is opened, free of secrets: enough to open it again in another process."""

    uri: str
    options: Mapping[str, object] = field(default_factory=dict)
    layers: tuple[Layer, ...] = ()

    def open(self) -> Service:
        """The service, with credentials found where this runs."""
        return build(self.uri, self.options, Chain(self.layers))


def opening_of(
    uri: str, options: Mapping[str, object], layers: tuple[Layer, ...]
) -> Opening | None:
    """What may be remembered of a URI and its options: everything but the secrets.

    None where the service cannot be opened again elsewhere.
    """
    portable: Callable[[str], bool] | None = getattr(_builder(scheme_of(uri)), "portable", None)
    if portable is not None and not portable(uri):
        return None
    # An opening is pickled and sent to other machines.
    secrets = secrets_of(scheme_of(uri))
    kept = {name: value for name, value in options.items() if name not in secrets}
    return Opening(uri, kept, layers)


def build(uri: str, options: Mapping[str, object], chain: Chain) -> Service:
    """The service behind a URI; raises InvalidInput, MissingExtra or Unsupported."""
    refuse_half_uri(uri)
    parsed = ServiceUri.parse(uri)
    module = _builder(parsed.scheme)
    for name in parsed.query:
        if name in secrets_of(parsed.scheme):
            raise InvalidInput(
                f"the secret {name!r} does not belong in a URI",
                hint="Give it by the environment or as a keyword; a URI ends up in logs.",
            )
        if name == CREDENTIALS:
            # Whoever may name a URI must not thereby choose which of our code is called.
            raise InvalidInput("a credentials provider is given as a keyword, not in a URI")
    merged: dict[str, object] = {**parsed.query, **options}
    provider = merged.pop(CREDENTIALS, None)
    if provider is not None:
        merged.update(_call_provider(provider))
    return cast(Service, module.build(parsed, merged, chain))


def list_buckets(uri: str, options: Mapping[str, object], chain: Chain) -> Iterator[Bucket]:
    """The buckets of the account behind ``scheme://``, by name; Unsupported where there are none.

    Nothing is sent before the first is asked for.
    """
    parsed = ServiceUri.parse(uri)
    module = _builder(parsed.scheme)
    own: Callable[..., Iterator[Bucket]] | None = getattr(module, "list_buckets", None)
    if own is None:
        raise Unsupported(f"{parsed.scheme}:// has no buckets to list")
    merged: dict[str, object] = {**parsed.query, **options}
    provider = merged.pop(CREDENTIALS, None)
    if provider is not None:
        merged.update(_call_provider(provider))
    return own(parsed, merged, chain)


def secrets_of(scheme: str) -> frozenset[str]:
    """The names of a scheme's options that must never be kept or shown."""
    return cast(frozenset[str], _builder(scheme).SECRETS)


def split(uri: str) -> tuple[str, str]:
    """A URI of one object, cut into the URI of an operator and the path of the object in it."""
    refuse_half_uri(uri)
    scheme = scheme_of(uri)
    module = _builder(scheme)
    own: Callable[[str], tuple[str, str]] | None = getattr(module, "split", None)
    if own is not None:
        return own(uri)
    host, _, path = uri.partition("://")[2].partition("/")
    return f"{scheme}://{host}", path


def refuse_half_uri(uri: str) -> None:
    """Raise InvalidInput for ``s3:bucket/key``, which would be a file in a folder ``s3:bucket``."""
    scheme, colon, rest = uri.partition(":")
    if colon and scheme.lower() in REGISTRY and not rest.startswith("//"):
        # The path of a file begins with a slash of its own, which follows the two.
        place = rest if scheme.lower() in ("file", "fs") else rest.lstrip("/")
        raise InvalidInput(
            f"{uri!r} is no URI: two slashes are missing",
            hint=f"Write {scheme}://{place}, or ./{uri} for a local file of that name.",
        )


def _builder(scheme: str) -> ModuleType:
    entry = REGISTRY.get(scheme)
    if entry is None:
        raise InvalidInput(
            f"there is no service for {scheme}://",
            hint=f"Schemes: {', '.join(sorted(REGISTRY))}; or a plain path.",
        )
    try:
        return importlib.import_module(entry.module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "calque":
            raise Unsupported(f"{scheme}:// is not part of this build of calque") from error
        if entry.extra is None:
            raise
        raise MissingExtra.of(entry.extra, f"{scheme}://") from error


def _call_provider(provider: object) -> dict[str, object]:
    if not isinstance(provider, str) or ":" not in provider:
        raise InvalidInput(
            "credentials must name a function that returns options",
            hint="For example credentials='mycompany.vault:s3_keys'.",
        )
    module, _, name = provider.partition(":")
    try:
        function: Any = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"the credentials provider {provider!r} cannot be imported") from error
    return dict(function())
