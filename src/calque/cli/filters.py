"""Filters on the command line: rules in their order, sizes, ages, storage classes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from typer._click.core import Context
from typer.core import TyperCommand

from calque.cli.quantities import parse_duration, parse_size
from calque.errors import ConfigInvalid
from calque.transfer.filters import Filters, Rule

_ARGUMENTS = "calque.arguments"

Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include", metavar="GLOB", help="Take what matches; the first rule that matches counts."
    ),
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="GLOB", help="Leave out what matches.")
]
MinSize = Annotated[
    str | None, typer.Option("--min-size", metavar="SIZE", help="Only objects of at least: 1MiB.")
]
MaxSize = Annotated[
    str | None, typer.Option("--max-size", metavar="SIZE", help="Only objects of at most: 1G.")
]
NewerThan = Annotated[
    str | None,
    typer.Option(
        "--newer-than", metavar="AGE", help="Only what changed since: 2h, 7d, 2026-01-31."
    ),
]
OlderThan = Annotated[
    str | None, typer.Option("--older-than", metavar="AGE", help="Only what changed before: 30d.")
]
StorageClass = Annotated[
    list[str] | None,
    typer.Option("--storage-class", metavar="NAME", help="Only objects of this class."),
]


class OrderedCommand(TyperCommand):
    """A command that remembers its arguments: of two kinds of rules the order counts."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)


def filters_of(
    context: typer.Context,
    *,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    min_size: str | None = None,
    max_size: str | None = None,
    newer_than: str | None = None,
    older_than: str | None = None,
    storage_class: Sequence[str] | None = None,
) -> Filters:
    """The filters of a command of the class :class:`OrderedCommand`."""
    now = datetime.now(UTC)
    return Filters(
        rules=_rules(context.meta[_ARGUMENTS], [*(include or ())], [*(exclude or ())]),
        min_size=None if min_size is None else parse_size(min_size),
        max_size=None if max_size is None else parse_size(max_size),
        newer_than=None if newer_than is None else parse_moment(newer_than, now),
        older_than=None if older_than is None else parse_moment(older_than, now),
        storage_classes=frozenset(storage_class or ()),
    )


def _rules(arguments: Sequence[str], include: list[str], exclude: list[str]) -> tuple[Rule, ...]:
    """The rules as they stand on the command line."""
    left = {"--include": include, "--exclude": exclude}
    kinds = {"--include": Rule.include, "--exclude": Rule.exclude}
    rules = []
    for argument in arguments:
        flag = argument.partition("=")[0]
        if left.get(flag):
            rules.append(kinds[flag](left[flag].pop(0)))
    return tuple(rules)


def parse_moment(text: str, now: datetime) -> datetime:
    """An age (``7d``: so long ago) or a date, in UTC unless it says otherwise."""
    try:
        return now - parse_duration(text)
    except ConfigInvalid:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigInvalid(
            f"{text!r} is no age and no date", hint="For example 12h, 7d, or 2026-01-31T18:00."
        ) from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)
