"""The keywords of ``calque.load``, spelled once; their defaults are those of the request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import Any, TypedDict

import pyarrow as pa

from calque.errors import StatementInvalid
from calque.loader.model.error_policy import ErrorPolicy
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.plan import MetadataColumn
from calque.loader.request.option_values import column_match, metadata_kind, on_error
from calque.loader.request.options import build_format, fields_said
from calque.loader.request.paths import Location, Stages, location_of, stage_and_files
from calque.loader.request.request import LoadRequest, OnChanged, Validation


class LoadKeywords(TypedDict, total=False):
    """What may be said of a load besides its stage and table."""

    format: str | FormatOptions | None
    format_options: Mapping[str, Any] | None
    files: Sequence[str]
    pattern: str | None
    force: bool
    purge: bool
    archive: Location | None
    on_error: str | ErrorPolicy
    on_changed: OnChanged
    size_limit: int | None
    max_files: int | None
    match_by: str | None
    columns: Sequence[str]
    metadata_columns: Mapping[str, str] | None
    schema: pa.Schema | str | None
    partition_by: Sequence[str]
    create: bool
    evolve: bool
    evolve_limit: int
    rescue_column: str | None
    load_uncertain_files: bool
    validate: bool | int
    return_failed_only: bool
    label: str | None
    min_age: float
    lease_seconds: float
    dry_run: bool


def request_of(stage: Stages, into: Location, keywords: LoadKeywords) -> LoadRequest:
    """The request that these keywords ask for; TypeError for one that there is not."""
    said: dict[str, Any] = dict(keywords)
    _refuse_unknown(said)
    kind, options = said.pop("format", None), said.pop("format_options", None)
    where, files = stage_and_files(stage, said.pop("files", ()))
    values = {
        _FIELDS.get(name, name): _VALUES[name](value) if name in _VALUES else value
        for name, value in said.items()
    }
    return LoadRequest(
        stage=where,
        into=location_of(into),
        files=files,
        format=_format(kind, options),
        said=fields_said(kind, options or {}) if isinstance(kind, str) else None,
        **values,
    )


def signature_of(function: Callable[..., object]) -> inspect.Signature:
    """A function's signature with the keywords of a load in the place of its ``**keywords``."""
    told = inspect.signature(function)
    given = [one for one in told.parameters.values() if one.kind is not one.VAR_KEYWORD]
    own = [one for one in given if one.kind is one.KEYWORD_ONLY]
    first = [one for one in given if one.kind is not one.KEYWORD_ONLY]
    known = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(name),
            annotation=getattr(annotation, "__forward_arg__", annotation),
        )
        for name, annotation in LoadKeywords.__annotations__.items()
    ]
    return told.replace(parameters=[*first, *known, *own])


def _default(name: str) -> Any:
    """As it would be spelled in the call: that of the request, or what stands for it."""
    if name in _SPELLED:
        return _SPELLED[name]
    field = next(one for one in fields(LoadRequest) if one.name == name)
    return None if field.default is MISSING else field.default


def _refuse_unknown(said: Mapping[str, Any]) -> None:
    for name in said:
        if name not in LoadKeywords.__annotations__:
            close = get_close_matches(name, LoadKeywords.__annotations__, n=1)
            hint = f". Did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"load() got an unexpected keyword argument {name!r}{hint}")


def _format(
    format: str | FormatOptions | None, options: Mapping[str, Any] | None
) -> FormatOptions | None:
    if format is None or isinstance(format, str):
        return build_format(format, options or {})
    if options:
        raise StatementInvalid("format_options go with the name of a format")
    return format


def _policy(policy: str | ErrorPolicy) -> ErrorPolicy:
    return policy if isinstance(policy, ErrorPolicy) else _read("on_error", on_error, policy)


def _metadata(columns: Mapping[str, str] | None) -> tuple[MetadataColumn, ...]:
    return tuple(
        MetadataColumn(name, _read("metadata_columns", metadata_kind, kind))
        for name, kind in (columns or {}).items()
    )


def _schema(schema: pa.Schema | str | None) -> pa.Schema | None:
    if not isinstance(schema, str):
        return schema
    from calque.loader.request.schema_text import schema_of_text  # SQL, which few loads speak

    return schema_of_text(schema)


def _validation(validate: bool | int) -> Validation | None:
    if validate is False:
        return None
    return Validation() if validate is True else Validation(validate)


def _read(name: str, convert: Callable[[Any], Any], value: Any) -> Any:
    try:
        return convert(value)
    except ValueError as error:
        raise StatementInvalid(f"{name} cannot be {value!r}: {error}") from error


_FIELDS = {"validate": "validation"}
"""Keywords that have another name than the field they fill."""

_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "archive": lambda value: None if value is None else location_of(value),
    "columns": tuple,
    "match_by": lambda value: None if value is None else _read("match_by", column_match, value),
    "metadata_columns": _metadata,
    "on_error": _policy,
    "partition_by": tuple,
    "schema": _schema,
    "validate": _validation,
}
"""How the values are read whose keywords take more than the request holds."""

_SPELLED: Mapping[str, Any] = {
    "format_options": None,
    "metadata_columns": None,
    "on_error": "abort_statement",
    "validate": False,
}
"""Defaults that a caller spells otherwise than the request holds them."""
