"""The keywords of ``calque.load``."""

from __future__ import annotations

import inspect
import pydoc
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest

import calque
from calque.errors import StatementInvalid
from calque.loader.model.error_policy import ErrorMode, ErrorPolicy
from calque.loader.model.file_formats import CsvFormat
from calque.loader.model.plan import MetadataColumn, MetadataKind
from calque.loader.request.keywords import LoadKeywords, request_of
from calque.loader.request.request import LoadRequest, Validation

PLAIN = LoadRequest(stage="in/", into="t")


def asked(**keywords: Any) -> LoadRequest:
    return request_of("in/", "t", keywords)  # type: ignore[arg-type]


def test_nothing_said_is_the_plain_request() -> None:
    """Defaults are those of the request, and of nothing else."""
    assert asked() == PLAIN


def test_the_signature_names_every_keyword() -> None:
    """Whoever asks Python what load takes sees each keyword, its default and no ``**``."""
    told = inspect.signature(calque.load).parameters
    assert set(LoadKeywords.__annotations__) < set(told)
    assert list(told)[:2] == ["stage", "into"]
    assert not [one for one in told.values() if one.kind is one.VAR_KEYWORD]
    assert (told["on_error"].default, told["lease_seconds"].default) == ("abort_statement", 60.0)


def test_defaults_as_told_change_nothing() -> None:
    """A call that spells every default asks for what a call without them asks for."""
    told = inspect.signature(calque.load).parameters
    defaults = {name: told[name].default for name in LoadKeywords.__annotations__}
    assert asked(**defaults) == PLAIN


def test_help_speaks_of_every_keyword() -> None:
    """The docstring says of each what it does."""
    told = inspect.getdoc(calque.load) or ""
    assert [name for name in inspect.signature(calque.load).parameters if name not in told] == []
    assert "match_by" in pydoc.plain(pydoc.render_doc(calque.load))


def test_every_keyword_has_a_field() -> None:
    """Only the format's options and the validation are spelled otherwise in the request."""
    known = {one.name for one in fields(LoadRequest)}
    assert set(LoadKeywords.__annotations__) - known == {"format_options", "validate"}


@pytest.mark.parametrize(
    ("keywords", "field", "value"),
    [
        ({"on_error": "skip_file_3"}, "on_error", ErrorPolicy(ErrorMode.SKIP_FILE, 3)),
        ({"on_error": ErrorPolicy(limit=2)}, "on_error", ErrorPolicy(limit=2)),
        ({"match_by": "case_sensitive"}, "match_by", "name"),
        ({"match_by": "none"}, "match_by", "position"),
        ({"columns": ["a", "b"]}, "columns", ("a", "b")),
        ({"schema": "id BIGINT"}, "schema", pa.schema([("id", pa.int64())])),
        ({"validate": True}, "validation", Validation()),
        ({"validate": 3}, "validation", Validation(3)),
        ({"files": ["a"]}, "files", ("a",)),
        (
            {"format": "csv", "format_options": {"skip_header": 1}},
            "format",
            CsvFormat(skip_header=1),
        ),
        (
            {"metadata_columns": {"source": "file"}},
            "metadata_columns",
            (MetadataColumn("source", MetadataKind.FILE),),
        ),
    ],
)
def test_values_are_read(keywords: dict[str, Any], field: str, value: object) -> None:
    """What a keyword takes becomes what the request holds."""
    assert getattr(asked(**keywords), field) == value


@pytest.mark.parametrize("name", ["on_error", "match_by"])
def test_a_bad_value_names_its_keyword(name: str) -> None:
    """The message begins with the word that the caller wrote."""
    with pytest.raises(StatementInvalid, match=f"{name} cannot be 'often'"):
        asked(**{name: "often"})


def test_an_unknown_keyword_is_a_type_error() -> None:
    """As for any function, and with a guess at what was meant."""
    with pytest.raises(TypeError, match=r"'on_eror'. Did you mean 'on_error'"):
        asked(on_eror="continue")
