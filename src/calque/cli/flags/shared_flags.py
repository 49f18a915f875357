"""Flags that commands share, put together from sheets: functions whose parameters are flags."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, get_type_hints

from calque.errors import ConfigInvalid, InvalidInput


@contextmanager
def blame_flags() -> Iterator[None]:
    """What cannot be asked for is here a matter of flags, so the exit code is that of usage."""
    try:
        yield
    except ConfigInvalid:
        raise
    except InvalidInput as error:
        raise ConfigInvalid(error.message, hint=error.hint) from error


def with_sheet(*sheets: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the flags of sheets: what they come to arrives by the name of the sheet.

    Typer reads flags off a signature; so that thirty of them are not written out in four commands,
    the signature is put together here.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(command)
        kept = [each for name, each in own.parameters.items() if name not in _names(sheets)]
        flags = [each for sheet in sheets for each in inspect.signature(sheet).parameters.values()]

        @functools.wraps(command)
        def call(**given: Any) -> Any:
            for sheet in sheets:
                names = inspect.signature(sheet).parameters
                with blame_flags():
                    given[_name(sheet)] = sheet(**{name: given.pop(name) for name in names})
            return command(**given)

        hints = {
            name: hint
            for each in (command, *sheets)
            for name, hint in get_type_hints(each, include_extras=True).items()
        }
        parameters = [
            each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for each in (*kept, *flags)
        ]
        call.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=parameters, return_annotation=None
        )
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        del call.__wrapped__
        return call

    return decorate


def _name(sheet: Callable[..., Any]) -> str:
    return str(sheet.__name__).removeprefix("sheet_of_")


def _names(sheets: Sequence[Callable[..., Any]]) -> set[str]:
    return {_name(sheet) for sheet in sheets}
