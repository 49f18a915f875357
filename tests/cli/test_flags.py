"""Errors of ``calque load`` name flags."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command

from calque.cli.commands.load import app
from calque.cli.flags.format_flags import FormatSaid, read_format
from calque.cli.flags.named_in_errors import FLAGS, in_flags, name_flags
from calque.errors import StatementInvalid


def test_every_flag_is_one() -> None:
    """What a message names can be typed."""
    known = {name for one in get_command(app).params for name in one.opts}
    assert set(FLAGS.values()) <= known


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "PURGE removes files and ARCHIVE moves them",
            "--purge removes files and --archive moves them",
        ),
        ("Nothing was loaded. ON_ERROR says", "Nothing was loaded. --on-error says"),
        ("Leave it to ON_ERROR.", "Leave it to --on-error."),
        ("Say it: FILE_FORMAT = (TYPE = CSV) or --format csv.", "Say it: --format csv."),
        ("s3://b/PURGE/FORCE.csv: 'LABEL' in FORCED", "s3://b/PURGE/FORCE.csv: 'LABEL' in FORCED"),
        ("the column MY_LABEL", "the column MY_LABEL"),
    ],
)
def test_words_become_flags(text: str, told: str) -> None:
    """Options do; names and paths that look like them do not."""
    assert in_flags(text) == told


def test_an_error_passes_in_its_own_kind() -> None:
    """Message and hint are told in flags; it is the same error."""
    error = StatementInvalid("ON_ERROR is wrong", hint="See ON_ERROR.")
    with pytest.raises(StatementInvalid) as caught, name_flags():
        raise error
    assert caught.value is error
    assert str(error) == "--on-error is wrong\n  See --on-error."


def said(option: list[str] | None = None, **flags: str) -> FormatSaid:
    every: dict[str, Any] = {"header": None, "delimiter": None, "quote": None, "encoding": None}
    return read_format("csv", option, **{**every, **flags})


@pytest.mark.parametrize(
    ("option", "flags", "why"),
    [
        ([], {"delimiter": ""}, "--delimiter cannot be ''"),
        (["sep="], {}, "sep cannot be ''"),
        (["sep=;", "SEP=,"], {}, "SEP is said twice"),
        (["delimiter=;"], {"delimiter": ","}, "delimiter is said twice"),
        (["sep=;"], {"delimiter": ","}, "sep and delimiter say two things"),
    ],
)
def test_what_is_wrong_with_a_format(option: list[str], flags: dict[str, str], why: str) -> None:
    """A flag is named as a flag; two answers to one question are an error, none is passed over."""
    with pytest.raises(StatementInvalid, match=why):
        said(option, **flags)


def test_the_same_thing_twice_is_harmless() -> None:
    """Two spellings that agree say one thing."""
    assert said(["sep=;"], delimiter=";").said == frozenset({"field_delimiter"})
