"""``calque store fsck``: is the store whole?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.flags.upkeep_flags import Engine, Folder, Master, open_store, row_bar, scan_options
from calque.cli.output import FAILED, JsonFlag, as_json, say, table

if TYPE_CHECKING:
    from calque.store.metabase.fsck import Finding


def fsck(
    folder: Folder,
    young: Annotated[
        bool,
        typer.Option(
            "--young", help="Report pieces of the last 72 hours as orphans too: nothing may run."
        ),
    ] = False,
    nodes: Annotated[
        bool, typer.Option("--nodes/--no-nodes", help="Compare the pieces on the nodes, too.")
    ] = True,
    checksums: Annotated[
        bool,
        typer.Option(
            "--checksums",
            help="Also whether the checksums of S3 uploads in parts give that of their object. "
            "They are sealed, so this takes the passphrase of the store.",
        ),
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair/--dry-run",
            help="Mend what is safe: references that nobody uses, leftover keys, usage.",
        ),
    ] = False,
    engine: Engine = "auto",
    master: Master = None,
    json: JsonFlag = False,
) -> None:
    """Compare every row with every other, and the pieces on the nodes with the rows.

    Nothing is changed without `--repair`. Exit code 1 when something is wrong, or stays so.

    calque store fsck ./data

    calque store fsck ./data --repair
    """
    from calque.store.upkeep.fsck import check_store, mend_store, note_findings

    with open_store(folder) as store:
        with row_bar("segments") as tell:
            findings = check_store(
                store, young=young, nodes=nodes, scan=scan_options(engine, master), tell=tell
            )
        if checksums:
            findings += _check_checksums(folder)
        mended = (
            [each.finding for each in mend_store(store, findings) if each.done] if repair else []
        )
        left = [each for each in findings if each not in mended]
        note_findings(store, left)
    if json:
        as_json([{**each._asdict(), "mended": each in mended} for each in findings])
    elif findings:
        rows = [(*each, "mended" if each in mended else "") for each in findings]
        table(["what", "where", ""], rows)
    else:
        say("the store is whole")
    if left:
        raise typer.Exit(FAILED)


def _check_checksums(folder: Path) -> list[Finding]:
    from calque.gateway.required_packages import require_gateway_extra

    require_gateway_extra()
    from calque.gateway.part_checksums import check_checksums
    from calque.store.open_project import open_project

    with open_project(folder, create=False) as project:
        return list(check_checksums(project))
