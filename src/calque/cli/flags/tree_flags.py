"""The flags that all commands over trees share, and what they come to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from calque.cli.flags.quantities import parse_duration, parse_rate, parse_size
from calque.cli.flags.shared_flags import blame_flags
from calque.cli.standard_streams import STANDARD
from calque.errors import ConfigInvalid, InvalidInput
from calque.transfer.request.filters import Filters, Rule
from calque.transfer.request.options import (
    SPLIT_OVER,
    Compare,
    Fsync,
    Links,
    MaxDelete,
    OnCollision,
    OnError,
    TreeOptions,
)

Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include", metavar="GLOB", help="Take what matches; the first rule that does decides."
    ),
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="GLOB", help="Leave out what matches.")
]
MinSize = Annotated[str | None, typer.Option("--min-size", metavar="SIZE", help="None smaller.")]
MaxSize = Annotated[str | None, typer.Option("--max-size", metavar="SIZE", help="None larger.")]
NewerThan = Annotated[
    str | None,
    typer.Option("--newer-than", metavar="TIME", help="Modified since: 2d, 2026-11-01."),
]
OlderThan = Annotated[
    str | None, typer.Option("--older-than", metavar="TIME", help="Not modified since then.")
]
StorageClass = Annotated[
    list[str] | None,
    typer.Option("--storage-class", metavar="CLASS", help="Only of these storage classes."),
]
FilesFrom = Annotated[
    str | None,
    typer.Option("--files-from", metavar="FILE", help="Only paths named there, one a line; or -."),
]
Nul = Annotated[bool, typer.Option("--null", "-0", help="Names of --files-from end in NUL.")]
FromReport = Annotated[
    str | None,
    typer.Option("--from-report", metavar="REPORT", help="Only paths of an earlier report."),
]
Only = Annotated[
    str,
    typer.Option("--only", metavar="OUTCOMES", help="Which of that report: failed,skipped."),
]


Recursive = Annotated[
    bool, typer.Option("--recursive", "-r", help="Folders with all that lies below them.")
]

Restart = Annotated[
    bool,
    typer.Option("--restart", help="Begin anew, although an earlier run was left unfinished."),
]
KeepJournal = Annotated[
    bool,
    typer.Option("--journal/--no-journal", help="Note progress, so that it can be resumed."),
]

Verify = Annotated[
    bool, typer.Option("--verify", help="Look at every copied target of a tree again at the end.")
]


def sheet_of_filters(
    include: Include = None,
    exclude: Exclude = None,
    min_size: MinSize = None,
    max_size: MaxSize = None,
    newer_than: NewerThan = None,
    older_than: OlderThan = None,
    storage_class: StorageClass = None,
) -> Filters:
    """The filters that flags ask for."""
    return Filters(
        rules=rules_in_order(include or (), exclude or (), sys.argv[1:]),
        min_size=None if min_size is None else parse_size(min_size),
        max_size=None if max_size is None else parse_size(max_size),
        newer_than=_moment(newer_than),
        older_than=_moment(older_than),
        storage_classes=frozenset(storage_class or ()),
    )


def names_from(
    files_from: str | None, null: bool, from_report: str | None, only: str
) -> tuple[str, ...] | None:
    """The paths that a file or an earlier report names; None where neither was given."""
    if files_from is None and from_report is None:
        return None
    from calque.transfer.report.report_file import parse_outcomes, read_paths
    from calque.transfer.request.names_file import read_names

    if files_from is not None and from_report is not None:
        raise InvalidInput("--files-from and --from-report both name paths: choose one")
    if files_from is not None:
        return read_names(files_from, nul=null)
    return None if from_report is None else read_paths(from_report, parse_outcomes(only))


def rules_in_order(
    include: Sequence[str], exclude: Sequence[str], arguments: Sequence[str]
) -> tuple[Rule, ...]:
    """Includes and excludes in the order in which they were typed: the first to match decides."""
    typed: list[tuple[str, str]] = []
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in ("--include", "--exclude"):
            typed.append((name, value if equals else "".join(arguments[place + 1 : place + 2])))
    wanted = [("--include", each) for each in include] + [("--exclude", each) for each in exclude]
    if sorted(typed) != sorted(wanted):  # called by a program and not by this command line
        typed = wanted
    make = {"--include": Rule.include, "--exclude": Rule.exclude}
    return tuple(make[name](value) for name, value in typed)


def _moment(text: str | None) -> datetime | None:
    """``2d`` is two days ago; else a date, or a date and time, of this machine's clock."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) - parse_duration(text)
    return moment if moment.tzinfo else moment.astimezone()


def sheet_of_tree(
    compare: Annotated[
        Compare, typer.Option("--compare", help="By what it is decided whether to copy.")
    ] = "default",
    download: Annotated[
        bool,
        typer.Option("--download", help="With --compare checksum: read both where none is told."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only say what would be done.")
    ] = False,
    report: Annotated[
        str | None,
        typer.Option(
            "--report", metavar="FILE", help="A row for each object: .jsonl .csv .parquet"
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="N/s", help="Requests a second, at most: 200/s."),
    ] = None,
    bandwidth: Annotated[
        str | None,
        typer.Option("--bandwidth", metavar="SIZE/s", help="Through this machine: 50M/s."),
    ] = None,
    on_error: Annotated[
        OnError, typer.Option("--on-error", help="Go on with the rest, or stop at the first.")
    ] = "continue",
    fsync: Annotated[
        Fsync, typer.Option("--fsync", help="When files are brought to the disk.")
    ] = "batch",
    content_type: Annotated[
        str | None, typer.Option("--content-type", help="Of all uploads; else by their names.")
    ] = None,
    fold_case: Annotated[
        bool,
        typer.Option(
            "--fold-case", help="Refuse names that differ in case only, wherever they go."
        ),
    ] = False,
    on_collision: Annotated[
        OnCollision,
        typer.Option(
            "--on-collision", help="Of names that differ in case only: refuse all, or rename."
        ),
    ] = "refuse",
    no_space_check: Annotated[
        bool,
        typer.Option("--no-space-check", help="Try also what a local target has no room for."),
    ] = False,
    backup_to: Annotated[
        str | None,
        typer.Option(
            "--backup-to", metavar="FOLDER", help="Keep there what is overwritten or deleted."
        ),
    ] = None,
    folders: Annotated[
        bool, typer.Option("--folders", help="Keep empty folders as markers in object services.")
    ] = False,
    links: Annotated[
        Links, typer.Option("--links", help="Follow links, or keep them; unsafe: those out too.")
    ] = "follow",
    modes: Annotated[
        bool, typer.Option("--modes", help="Give files the modes that their objects keep.")
    ] = False,
    owner: Annotated[
        bool, typer.Option("--owner", help="Keep owners of files, and give them back.")
    ] = False,
    spark: Annotated[
        str | None,
        typer.Option("--spark", metavar="URL", help="Copy on this cluster: spark://host:7077."),
    ] = None,
    split_over: Annotated[
        str | None,
        typer.Option(
            "--split-over",
            metavar="SIZE",
            help="On a cluster: split larger objects over tasks.",
            show_default="1 GiB",
        ),
    ] = None,
    shared_fs: Annotated[
        bool, typer.Option("--shared-fs", help="Every executor sees the local folders named.")
    ] = False,
    restart: Restart = False,
    journal: KeepJournal = True,
    no_glob: Annotated[
        bool, typer.Option("--no-glob", help="Take * ? [ and { in a source as they are.")
    ] = False,
    files_from: FilesFrom = None,
    null: Nul = False,
    from_report: FromReport = None,
    only: Only = "failed",
) -> tuple[TreeOptions, str | None]:
    """Options of a run, and the file of its rows."""
    options = TreeOptions(
        compare=compare,
        download=download,
        dry_run=dry_run,
        rate=None if rate is None else parse_rate(rate),
        bandwidth=None if bandwidth is None else parse_size(bandwidth.removesuffix("/s")),
        on_error=on_error,
        fsync=fsync,
        fold_case=fold_case,
        on_collision=on_collision,
        space_check=not no_space_check,
        content_type=content_type,
        folders=folders,
        backup_to=backup_to,
        links=links,
        modes=modes,
        owner=owner,
        spark=spark,
        shared_fs=shared_fs,
        split_over=SPLIT_OVER if split_over is None else parse_size(split_over),
        restart=restart,
        journal=journal,
        globs=not no_glob,
        files_from=names_from(files_from, null, from_report, only),
        as_reported=from_report is not None,
    )
    return options, report


def sheet_of_deletes(
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete at the target what the source lacks, last.")
    ] = False,
    delete_all: Annotated[
        bool, typer.Option("--delete-all", help="Even where the source has nothing at all.")
    ] = False,
    delete_excluded: Annotated[
        bool, typer.Option("--delete-excluded", help="Delete what filters leave out, too.")
    ] = False,
    max_delete: Annotated[
        str,
        typer.Option(
            "--max-delete",
            metavar="N|P%",
            help="Delete nothing at all where it would be more.",
            show_default="50% of more than 100",
        ),
    ] = "",
    track_renames: Annotated[
        bool,
        typer.Option(
            "--track-renames", help="Move inside the target what has another name at the source."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deleting.")] = False,
) -> tuple[dict[str, object], bool]:
    """What may be deleted, and whether to ask."""
    asked: dict[str, object] = {
        "delete": delete or delete_all or delete_excluded,
        "delete_all": delete_all,
        "delete_excluded": delete_excluded,
        "track_renames": track_renames,
    }
    if max_delete:
        asked["max_delete"] = MaxDelete.parse(max_delete)
    return asked, yes


def is_of_trees(
    locations: Sequence[str],
    recursive: bool,
    filters: Filters,
    tree: tuple[TreeOptions, str | None],
) -> bool:
    """Whether a command is about more than one object: -r, several sources, or a pattern."""
    several = len(locations) > 2 and STANDARD not in locations
    options, report = tree
    patterns = options.globs and _has_pattern(locations[:-1])
    if recursive or several or patterns or options.files_from is not None:
        return True
    if (
        report is not None
        or not filters.are_none
        or options != replace(TreeOptions(), globs=options.globs)
    ):
        raise ConfigInvalid(
            "filters, --report, --dry-run and the like are for trees, and this is one object",
            hint="With --recursive it is taken for a tree.",
        )
    return False


def _has_pattern(locations: Sequence[str]) -> bool:
    if not any(sign in each for each in locations for sign in "*?[{"):
        return False  # as most have none, most need not ask
    from calque.transfer.plan.places import has_glob

    return any(has_glob(each) for each in locations)


def source_and_target(locations: Sequence[str]) -> tuple[str, str]:
    """The two names of a copy of one object."""
    if len(locations) != 2:
        raise typer.BadParameter("a source and a target are needed", param_hint="SRC... DST")
    return locations[0], locations[1]


def refuse_single(**given: object) -> None:
    """Raise for a flag that says something of one object and was given for many."""
    for name, value in given.items():
        if value:
            raise ConfigInvalid(f"--{name.replace('_', '-')} is of one object, not of a tree")


def with_filters(options: TreeOptions, filters: Filters, **more: object) -> TreeOptions:
    """Options of a run with the filters and what else a command says."""
    with blame_flags():
        return replace(options, filters=filters, **more)  # type: ignore[arg-type]


def parse_chunk(chunk: str | None) -> int | None:
    return None if chunk is None else parse_size(chunk)
