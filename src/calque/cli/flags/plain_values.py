"""Values of flags that are what they are: text, and defaults that we wrote ourselves.

Newer versions of Typer check every value by pydantic, whose import takes as long as all else that a
short command needs. What is left as it was typed needs no check; any other value takes Typer's way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_origin

if TYPE_CHECKING:  # no public names of Typer's
    from typer._click.core import Command

_PLAIN = (str, int, float, bool)


class PlainValue:
    """Stands before what Typer would make to check the values of one parameter."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """As Typer's own, for what it would leave as it is; that one for all else."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if _is_text(param.type_descriptor):
            if isinstance(value, str):
                return value
            if isinstance(value, list | tuple):
                return list(value)
        if _is_default(param, value):
            return value
        param._runtime_param = None  # from here on Typer's, which it makes by itself
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def spare_checks(command: Command) -> None:
    """Let plain values of a command, and of those below it, pass; older versions of Typer do."""
    for parameter in command.params:
        _spare(parameter)
    make_help = command.get_help_option

    def get_help_option(ctx: Any) -> Any:
        return _spare(make_help(ctx))

    command.get_help_option = get_help_option  # type: ignore[method-assign]
    for below in getattr(command, "commands", {}).values():
        spare_checks(below)


def _spare(parameter: Any) -> Any:
    if getattr(parameter, "_runtime_param", True) is None:
        parameter._runtime_param = PlainValue()
    return parameter


def _is_text(descriptor: Any) -> bool:
    """Whether it is text that stays as it is: no path that must exist, nothing that is parsed."""
    if descriptor.annotation not in (str, list[str]) or descriptor.is_file or descriptor.is_path:
        return False
    info = descriptor.parameter_info
    return getattr(info, "parser", None) is None and not descriptor.is_choice


def _is_default(param: Any, value: Any) -> bool:
    """Whether it is the default as it is written in the signature, of the type it has there."""
    if type(value) not in _PLAIN or value != param.default:
        return False
    annotation = param.type_descriptor.annotation
    return annotation is type(value) or get_origin(annotation) is Literal
